import { createHash, type Hash } from "node:crypto";
import { messageOf } from "../../base/failure.ts";
import { within } from "../../base/deadline.ts";
import type { NarBody, NarBodySource } from "../../upstream/upstream.ts";
import type { FetchEvent, FetchFailure, FetchOrder } from "./nar_fetcher.ts";

/** Room for one read; the network delivers some 60 to 90 KiB at once. */
const READ_BYTES = 256 * 1024;

/** At most one progress message in this time: readers wait no longer, and messages cost. */
const TELL_EVERY_MS = 2;

class FetchError extends Error {
  readonly reason: FetchFailure;

  constructor(reason: FetchFailure, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Fetches one NAR file from `source` into the order's file and hashes it on the way. Meant for a
 * Worker: it writes and hashes synchronously. Never throws: how it ends is the last event.
 */
export async function fetchNar(
  source: NarBodySource,
  order: FetchOrder & { readonly idleTimeoutMs: number },
  signal: AbortSignal,
  tell: (event: FetchEvent) => void,
): Promise<void> {
  try {
    const answer = await source.openNar(order.location, 0, signal);
    if (answer === undefined) return tell({ type: "absent" });
    const { fileSize } = answer;
    if (fileSize !== undefined && !isExpected(order, fileSize)) {
      await answer.body.cancel();
      const expected = order.fileSize ?? `at most ${order.fileSizeMax}`;
      throw new FetchError("size", `it announces ${fileSize} bytes, not ${expected}`);
    }
    tell(fileSize === undefined ? { type: "opened" } : { type: "opened", fileSize });
    using progress = new Progress(tell);
    const { received, hash } = await receive(answer, order, progress);
    if (fileSize !== undefined && received !== fileSize) {
      throw new FetchError("upstream", `got ${received} of ${fileSize} bytes`);
    }
    progress.stop();
    tell({ type: "end", fileSize: received, digest: hash.digest() });
  } catch (error) {
    const reason = signal.aborted
      ? "cancelled"
      : error instanceof FetchError
      ? error.reason
      : "upstream";
    tell({ type: "failed", reason, detail: messageOf(error) });
  }
}

function isExpected({ fileSize, fileSizeMax }: FetchOrder, announced: number): boolean {
  return fileSize === undefined ? announced <= fileSizeMax : announced === fileSize;
}

async function receive(
  { body }: NarBody,
  { path, fileSizeMax, idleTimeoutMs }: FetchOrder & { readonly idleTimeoutMs: number },
  progress: Progress,
): Promise<{ received: number; hash: Hash }> {
  const hash = createHash("sha256");
  const reader = body.getReader({ mode: "byob" });
  let received = 0;
  let buffer = new ArrayBuffer(READ_BYTES);
  try {
    using file = openForWriting(path);
    for (;;) {
      const reading = reader.read(new Uint8Array(buffer));
      const result = await within(reading, idleTimeoutMs);
      if (result === undefined) {
        throw new FetchError("upstream", `nothing came for ${idleTimeoutMs} ms`);
      }
      if (result.value === undefined || result.done) return { received, hash };
      received += result.value.length;
      if (received > fileSizeMax) {
        throw new FetchError("size", `it is over ${fileSizeMax} bytes`);
      }
      writeAll(file, result.value);
      progress.tell(received);
      hash.update(result.value);
      buffer = result.value.buffer as ArrayBuffer;
    }
  } catch (error) {
    await reader.cancel().catch(() => undefined);
    throw error;
  } finally {
    reader.releaseLock();
  }
}

function openForWriting(path: string): Deno.FsFile {
  try {
    return Deno.openSync(path, { write: true, truncate: true });
  } catch (error) {
    throw new FetchError("disk", messageOf(error));
  }
}

function writeAll(file: Deno.FsFile, bytes: Uint8Array): void {
  try {
    for (let written = 0; written < bytes.length;) {
      written += file.writeSync(bytes.subarray(written));
    }
  } catch (error) {
    throw new FetchError("disk", messageOf(error));
  }
}

/** Tells how far the file has grown: at once after a pause, else in steps of time. */
class Progress implements Disposable {
  readonly #tell: (event: FetchEvent) => void;
  #toldAt = -Infinity;
  #received = 0;
  #timer: number | undefined;

  constructor(tell: (event: FetchEvent) => void) {
    this.#tell = tell;
  }

  tell(received: number): void {
    this.#received = received;
    if (this.#timer !== undefined) return;
    const waitMs = this.#toldAt + TELL_EVERY_MS - performance.now();
    if (waitMs <= 0) this.#send();
    else this.#timer = setTimeout(() => this.#send(), waitMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  #send(): void {
    this.#timer = undefined;
    this.#toldAt = performance.now();
    this.#tell({ type: "bytes", received: this.#received });
  }
}
