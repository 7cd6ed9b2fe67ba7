import { messageOf } from "../../base/failure.ts";
import { within } from "../../base/deadline.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import type { NarBody, NarBodySource } from "../../upstream/upstream.ts";
import { FetchError, fetchFailureOf } from "./fetch_error.ts";
import { ProgressTeller } from "./fetch_progress.ts";
import type { WriteAllowance } from "./write_allowance.ts";
import type { FetchFailure, FetchOutcome, FetchProgress } from "./nar_fetcher.ts";
import type { PartialFile } from "./partial_file.ts";

/** Room for one read; the network delivers some 60 to 90 KiB at once. */
const READ_BYTES = 256 * 1024;

/** When all bytes are here the body's end is waited for this long, to see that no more follow. */
export const END_WAIT_MS = 1_000;

export interface FetchNarParts {
  readonly upstream: Pick<NarBodySource, "openNar">;
  readonly source: NarSource;
  readonly file: PartialFile;
  readonly room: WriteAllowance;
  readonly idleTimeoutMs: number;
  readonly signal: AbortSignal;
  readonly tell: (progress: FetchProgress) => void;
  /** False where another source has answered: from then on the file is that one's to write. */
  readonly take: () => boolean;
  /** Told of each request to the upstream. */
  readonly asked?: () => void;
}

/**
 * Asks one source for a NAR file, or for what is missing of it, and appends what comes. What is
 * here already is compared where it is sent again. Meant for a Worker: it writes and hashes
 * synchronously. Never throws.
 */
export async function fetchNar(parts: FetchNarParts): Promise<FetchOutcome> {
  const { upstream, source, file, signal, asked } = parts;
  try {
    // Once there are bytes, whoever wants the rest decides who is asked again, and when.
    const request = { ...file.resumeAt(source), signal, asked, isFinal: file.received > 0 };
    const answer = await upstream.openNar(source.location, request);
    if (answer === undefined) return { type: "absent" };
    try {
      check(parts, answer);
      if (!parts.take()) throw new FetchError("outrun", "another upstream has answered first");
      begin(parts, answer);
    } catch (error) {
      await answer.body.cancel();
      throw error;
    }
    const hadMore = await receive(parts, answer);
    return { ...ended(file, !answer.framed), ...(hadMore ? { surplus: true } : {}) };
  } catch (error) {
    const reason = fetchFailureOf(error);
    if (signal.aborted) return gaveUp(signal.reason);
    // All that was wanted is here: how the body ended is of no interest.
    if (UPSTREAM_REASONS.includes(reason) && isComplete(file)) {
      return ended(file, false);
    }
    return { type: "failed", reason, detail: messageOf(error) };
  }
}

/** Those that say nothing of what is here already. */
const UPSTREAM_REASONS: readonly FetchFailure[] = [
  "status",
  "upstream",
  "stalled",
  "timeout",
  "unreachable",
];

/** Outrun, or ended as a whole. */
function gaveUp(why: unknown): FetchOutcome {
  const reason = why instanceof FetchError ? why.reason : "cancelled";
  return { type: "failed", reason, detail: messageOf(why) };
}

/** Throws when the answer cannot be (the rest of) the file. */
function check({ file }: FetchNarParts, answer: NarBody): void {
  const { fileSize, offset } = answer;
  const { order, received } = file;
  if (fileSize !== undefined && fileSize !== (order.fileSize ?? fileSize)) {
    throw new FetchError("size", `it announces ${fileSize} bytes, not ${order.fileSize}`);
  }
  if (fileSize !== undefined && fileSize > order.fileSizeMax) {
    throw new FetchError("size", `it announces ${fileSize} bytes, not up to ${order.fileSizeMax}`);
  }
  if (received > 0 && fileSize !== undefined && fileSize !== (file.fileSize ?? fileSize)) {
    throw new FetchError("differs", `it announces ${fileSize} bytes, not ${file.fileSize}`);
  }
  if (offset > received) {
    throw new FetchError("upstream", `it begins at byte ${offset}, not ${received}`);
  }
}

function begin({ source, file, tell }: FetchNarParts, answer: NarBody): void {
  const { fileSize } = answer;
  file.continueFrom(source, answer);
  if (file.received === 0) {
    tell({ type: "opened", ...(fileSize === undefined ? {} : { fileSize }) });
  }
}

/** Resolves to true where more is sent than the file has. */
async function receive(parts: FetchNarParts, { body, offset }: NarBody): Promise<boolean> {
  const { file, idleTimeoutMs } = parts;
  const reader = body.getReader({ mode: "byob" });
  using progress = new ProgressTeller(parts.tell);
  let position = offset;
  let hadMore = false;
  let buffer = new ArrayBuffer(READ_BYTES);
  try {
    for (;;) {
      const waitMs = isComplete(file) ? Math.min(END_WAIT_MS, idleTimeoutMs) : idleTimeoutMs;
      const result = await within(reader.read(new Uint8Array(buffer)), waitMs);
      if (result === undefined) throw new FetchError("stalled", `nothing came for ${waitMs} ms`);
      if (result.value === undefined || result.done) break;
      const bytes = result.value.subarray(0, wantedEnd(file) - position);
      const end = position + bytes.length;
      // A head alone makes no room for all of the file: many a proxy sends it, and then nothing.
      const neededBytes = file.fileSize ?? Math.min(end, limitOf(file));
      if (bytes.length > 0) await parts.room.need(neededBytes);
      take(file, bytes, position, progress);
      position = end;
      hadMore = bytes.length < result.value.length;
      if (hadMore) {
        await reader.cancel();
        break;
      }
      buffer = result.value.buffer as ArrayBuffer;
    }
  } catch (error) {
    await reader.cancel().catch(() => undefined);
    throw error;
  } finally {
    reader.releaseLock();
  }
  if (position < (file.fileSize ?? file.received)) {
    throw new FetchError("upstream", `got ${position} of ${file.fileSize ?? "more"} bytes`);
  }
  return hadMore;
}

/** What stands at `position` already is compared; what is new is appended. */
function take(
  file: PartialFile,
  bytes: Uint8Array,
  position: number,
  progress: ProgressTeller,
): void {
  const { received } = file;
  const known = bytes.subarray(0, received - position);
  if (known.length > 0 && !file.has(known, position)) {
    throw new FetchError("differs", "it sends other bytes than those that are here");
  }
  const fresh = bytes.subarray(known.length);
  if (received + fresh.length > limitOf(file)) {
    throw new FetchError("size", `it is over ${limitOf(file)} bytes`);
  }
  if (fresh.length > 0) file.append(fresh, () => progress.grown(file.received));
}

/** Where a hash tells whether the bytes are right, what is sent behind the last one is not read. */
function wantedEnd({ fileSize = Infinity, order }: PartialFile): number {
  return order.anySource ? fileSize : Infinity;
}

/** More bytes than this are not the file. */
function limitOf({ fileSize, order }: PartialFile): number {
  return fileSize ?? order.fileSizeMax;
}

function isComplete({ received, fileSize }: PartialFile): boolean {
  return received > 0 && received === fileSize;
}

function ended({ received, digest }: PartialFile, maybeShort: boolean): FetchOutcome {
  return { type: "end", fileSize: received, digest, maybeShort };
}
