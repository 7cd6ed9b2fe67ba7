import { readStatus } from "../reading.ts";
import type { DocumentReading } from "../upstream.ts";
import { discard } from "./discard.ts";

/** What an answer that is not the document means; deals with its body. */
export async function readRefusal(
  response: Response,
): Promise<Exclude<DocumentReading, { kind: "found" }>> {
  await discard(response);
  if (readStatus(response.status) === "absent") return { kind: "absent" };
  return { kind: "failed", reason: "status", detail: `HTTP status ${response.status}` };
}
