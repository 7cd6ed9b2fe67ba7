import { Failure } from "../../base/failure.ts";

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
