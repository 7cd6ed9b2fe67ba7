import { Failure } from "../../base/failure.ts";
import type { ClientRequest } from "../message/client_request.ts";

const METHOD_REGEXP = /^[A-Z]{3,16}(?= )/;

/** A request that the server refuses by itself. */
export interface RefusedRequest {
  readonly status: number;
  /** A reason from a closed set, for the log, such as "bare line feed". */
  readonly reason: string;
  /** What was given and what is expected, for the client; `undefined`: the status says enough. */
  readonly expected?: string | undefined;
  /** The method, where the head is incomplete. */
  readonly method: string | undefined;
  /** The client, as `peerAddress` returns it. */
  readonly peer: string;
  /** The request with the bad body, if the app has it and answers it. */
  readonly request: ClientRequest | undefined;
}

/** A request that the app never answers, and that ends its connection. */
export class Refusal extends Failure {
  readonly status: number;

  /** A reason from a closed set, for the log, such as "bare line feed". */
  readonly reason: string;

  /** What was given and what is expected, for the client. */
  readonly expected: string | undefined;

  /** The method, if the server could read it. */
  readonly method: string | undefined;

  constructor(status: number, reason: string, expected?: string, method?: string) {
    super("bad-request", `Cannot read request: ${reason}`);
    this.reason = reason;
    this.expected = expected;
    this.status = status;
    this.method = method;
  }

  /** The same refusal with the method at the beginning of `head`. */
  in(head: string): Refusal {
    return new Refusal(this.status, this.reason, this.expected, METHOD_REGEXP.exec(head)?.[0]);
  }
}
