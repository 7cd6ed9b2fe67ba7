import { Failure, messageOf } from "../../base/failure.ts";
import { NoAnswer, type UpstreamReading } from "../upstream.ts";

/** What an error on the way to a document says of the upstream. */
export function failedReading(error: unknown): Extract<UpstreamReading, { kind: "failed" }> {
  return { kind: "failed", reason: reasonOf(error), detail: messageOf(error) };
}

function reasonOf(error: unknown) {
  if (error instanceof NoAnswer) return error.reason;
  return error instanceof Failure && error.kind === "corrupt" ? "garbage" : "unreachable";
}
