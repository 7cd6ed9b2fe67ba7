import { Failure } from "../../base/failure.ts";
import { NoAnswer } from "../../upstream/upstream.ts";
import type { FetchFailure } from "./nar_fetcher.ts";

/** A source did not come to the end of a NAR file; says whose fault it is. */
export class FetchError extends Error {
  readonly reason: FetchFailure;

  constructor(reason: FetchFailure, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Whose fault anything is that was thrown while a source was asked or read. A failure is an answer
 * without a body of use; a body that breaks throws what the network throws.
 */
export function fetchFailureOf(error: unknown): FetchFailure {
  if (error instanceof FetchError || error instanceof NoAnswer) return error.reason;
  return error instanceof Failure ? "status" : "upstream";
}
