import { Failure } from "../../base/failure.ts";
import type { ClientRequest } from "../message/client_request.ts";

const METHOD_REGEXP = /^[A-Z]{3,16}(?= )/;

/** What a client gets that the server turns away. */
export interface TurnedAway {
  readonly status: number;
  /** For the log, one of few, such as "bare line feed". */
  readonly reason: string;
  /** Of a request that could not be read further. */
  readonly method: string | undefined;
  /** The client, as `peerAddress` tells it. */
  readonly peer: string;
  /** The request whose body was amiss; the app has it, and answers it for itself. */
  readonly request: ClientRequest | undefined;
}

/** A request that is not answered by the app, and ends its connection. */
export class Refusal extends Failure {
  readonly status: number;

  /** For the log, one of few, such as "bare line feed". */
  readonly reason: string;

  /** Where it could be read. */
  readonly method: string | undefined;

  constructor(status: number, reason: string, method?: string) {
    super("bad-request", `Cannot read request: ${reason}`);
    this.reason = reason;
    this.status = status;
    this.method = method;
  }

  /** The same of a head that begins like this. */
  in(head: string): Refusal {
    return new Refusal(this.status, this.reason, METHOD_REGEXP.exec(head)?.[0]);
  }
}
