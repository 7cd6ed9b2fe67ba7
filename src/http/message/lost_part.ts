import type { Bytes } from "../../base/bytes.ts";
import {
  CANNOT_NOW,
  DATABASE_AWAY,
  type Facts,
  Failure,
  messageOf,
  STORAGE_AWAY,
} from "../../base/failure.ts";
import { DATABASE, STORAGE } from "../../telemetry/events.ts";

/** The facts of a failure for the log: the short error, and what failed if the failure tells. */
export function failureFacts(error: unknown): Facts {
  const part = lostPart(error);
  return { ...part === undefined ? {} : { part }, error: messageOf(error) };
}

/** The last line of JSON lines whose work has failed. The connection breaks behind it. */
export function failedLine(error: unknown): Bytes {
  const line = { event: "failed", part: lostPart(error) ?? null, reason: lossIn(error) };
  return new TextEncoder().encode(`${JSON.stringify(line)}\n`);
}

/** The sentence that names the part of a larder that has failed, for clients. */
export function lossIn(error: unknown): string {
  const part = lostPart(error);
  return part === DATABASE ? DATABASE_AWAY : part === STORAGE ? STORAGE_AWAY : CANNOT_NOW;
}

/** The part of a larder that has failed; `undefined` where the error does not tell. */
function lostPart(error: unknown): string | undefined {
  if (error instanceof Failure) {
    if (error.kind === "away" || error.kind === "out-of-reach") return DATABASE;
    const { part } = error.facts;
    return typeof part === "string" ? part : undefined;
  }
  const isOfDatabase = error instanceof Error && "code" in error &&
    error.code === "ERR_SQLITE_ERROR";
  return isOfDatabase ? DATABASE : undefined;
}
