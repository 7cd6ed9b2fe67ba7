import { Failure } from "../base/failure.ts";
import { NoAnswer, type UpstreamFailure } from "./upstream.ts";

/** What an operator can do about a failure. */
export const FAILURE_HINTS: Readonly<Record<UpstreamFailure, string>> = {
  timeout: "check the network, and whether the upstream is slow for others",
  unreachable: "check --cache-upstream-url and the network; it is used as soon as it answers",
  status: "look at the upstream: it is there, and answers with errors",
  garbage: "check that --cache-upstream-url is the address of a binary cache",
  untrusted: "give its public key with --cache-upstream-public-key",
};

/** The reason in the error of a request for the priority, or of a probe. */
export function failureOf(error: unknown): UpstreamFailure {
  if (error instanceof NoAnswer) return error.reason;
  return error instanceof Failure && error.facts["reason"] === "status" ? "status" : "garbage";
}
