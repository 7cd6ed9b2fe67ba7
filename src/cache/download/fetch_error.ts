import type { FetchFailure } from "./nar_fetcher.ts";

/** A source did not come to the end of a NAR file; says whose fault it is. */
export class FetchError extends Error {
  readonly reason: FetchFailure;

  constructor(reason: FetchFailure, message: string) {
    super(message);
    this.reason = reason;
  }
}
