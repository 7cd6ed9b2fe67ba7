import { Failure, messageOf } from "../../base/failure.ts";
import { readStatus } from "../read_narinfo.ts";
import { type DocumentReading, NoAnswer } from "../upstream.ts";
import { wholeNumber } from "../../base/plain_number.ts";

type FailedReading = Extract<DocumentReading, { kind: "failed" }>;

/** Reads the status of a response without a usable document, and discards its body. */
export async function readRefusal(
  response: Response,
): Promise<FailedReading | Extract<DocumentReading, { kind: "absent" }>> {
  await discard(response);
  if (readStatus(response.status) === "absent") return { kind: "absent" };
  const { status } = response;
  return { kind: "failed", reason: "status", detail: `HTTP status ${status}`, status };
}

/** Reads an error of a request for a document. */
export function failedReading(error: unknown): FailedReading {
  return { kind: "failed", reason: reasonOf(error), detail: messageOf(error) };
}

function reasonOf(error: unknown) {
  if (error instanceof NoAnswer) return error.reason;
  return error instanceof Failure && error.kind === "corrupt" ? "garbage" : "unreachable";
}

/** Reading a body up to this size gives the connection back; cancelling closes it. */
const READ_BYTES_MAX = 4_096;

/** Reads or cancels a body that nobody needs. */
export async function discard(response: Response): Promise<void> {
  const announced = wholeNumber(response.headers.get("content-length")) ?? NaN;
  if (announced <= READ_BYTES_MAX) await response.bytes();
  else await response.body?.cancel();
}
