import { Failure } from "../../base/failure.ts";
import type { ClientRequest } from "../client_request.ts";

/** What a client gets that the server turns away. */
export interface TurnedAway {
  readonly status: number;
  /** For the log, one of few, such as "bare line feed". */
  readonly reason: string;
  /** The request whose body was amiss; the app has it, and answers it for itself. */
  readonly request: ClientRequest | undefined;
}

/** A request that is not answered by the app, and ends its connection. */
export class Refusal extends Failure {
  readonly status: number;

  /** For the log, one of few, such as "bare line feed". */
  readonly reason: string;

  constructor(status: number, reason: string) {
    super("bad-request", `Cannot read request: ${reason}`);
    this.reason = reason;
    this.status = status;
  }
}
