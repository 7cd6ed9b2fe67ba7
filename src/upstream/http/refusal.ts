import { readStatus } from "../reading.ts";
import type { DocumentReading } from "../upstream.ts";

/** A refusal up to this size is read, which gives the connection back; cancelling closes it. */
const READ_BYTES_MAX = 4_096;

/** What an answer that is not the document means; deals with its body. */
export async function readRefusal(
  response: Response,
): Promise<Exclude<DocumentReading, { kind: "found" }>> {
  const announced = Number(response.headers.get("content-length") ?? NaN);
  if (announced <= READ_BYTES_MAX) await response.bytes();
  else await response.body?.cancel();
  if (readStatus(response.status) === "absent") return { kind: "absent" };
  return { kind: "failed", reason: "status", detail: `HTTP status ${response.status}` };
}
