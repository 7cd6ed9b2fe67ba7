import { Failure } from "../../base/failure.ts";
import { NoAnswer } from "../../upstream/upstream.ts";
import type { FetchFailure } from "./nar_fetcher.ts";

/** A source did not send the whole NAR file; `reason` says why. */
export class FetchError extends Error {
  readonly reason: FetchFailure;

  constructor(reason: FetchFailure, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * The reason for any error of a request or its body. A Failure is a response without a usable body;
 * a broken body throws the network's error.
 */
export function fetchFailureOf(error: unknown): FetchFailure {
  if (error instanceof FetchError || error instanceof NoAnswer) return error.reason;
  return error instanceof Failure ? "status" : "upstream";
}
