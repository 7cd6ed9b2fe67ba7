import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { messageOf } from "../../base/failure.ts";
import { readFully } from "../../base/read_fully.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import { FetchError } from "./fetch_error.ts";
import type { FetchOrder } from "./nar_fetcher.ts";

/** Where the next source is to begin. */
export interface ResumePoint {
  readonly offset: number;
  /** Only of the file that has this tag; another one is to be sent from its start. */
  readonly tag?: string;
}

/**
 * A NAR file that is put together from one or more sources, and hashed as it grows. Synchronous:
 * meant for a Worker. Throws FetchError "disk" when the disk does not do its part.
 */
export class PartialFile implements Disposable {
  readonly order: FetchOrder;
  readonly #file: Deno.FsFile;
  readonly #hash = createHash("sha256");
  #received = 0;
  #fileSize: number | undefined;
  /** Of the first bytes; `only` while all others are from there too. */
  #origin:
    | { readonly source: NarSource; readonly tag: string | undefined; only: boolean }
    | undefined;

  constructor(order: FetchOrder) {
    this.order = order;
    this.#fileSize = order.fileSize;
    this.#file = onDisk(() =>
      Deno.openSync(order.path, { read: true, write: true, truncate: true })
    );
  }

  get received(): number {
    return this.#received;
  }

  /** As it was ordered, else as the source of its first bytes announced it. */
  get fileSize(): number | undefined {
    return this.#fileSize;
  }

  /** SHA-256 of what is here. */
  get digest(): Uint8Array {
    return this.#hash.copy().digest();
  }

  /** What to ask `source` for. Without a known hash only the same file can be gone on with. */
  resumeAt(source: NarSource): ResumePoint {
    if (this.#received === 0) return { offset: 0 };
    if (this.order.anySource) return { offset: this.#received };
    const { only, source: first, tag } = this.#origin ?? {};
    if (!only || first === undefined || !isSame(first, source)) return { offset: 0 };
    return { offset: this.#received, ...(tag === undefined ? {} : { tag }) };
  }

  /** The next bytes are those of `source`, which says that its file has `fileSize` bytes. */
  continueFrom(source: NarSource, { fileSize, tag }: { fileSize?: number; tag?: string }): void {
    if (this.#received === 0) {
      this.#origin = { source, tag, only: true };
      this.#fileSize = this.order.fileSize ?? fileSize;
    } else if (this.#origin !== undefined && !isSame(this.#origin.source, source)) {
      this.#origin.only = false;
    }
  }

  /** True when these bytes stand at `position` already. */
  has(bytes: Uint8Array, position: number): boolean {
    const own = new Uint8Array(bytes.length);
    const read = onDisk(() => {
      this.#file.seekSync(position, Deno.SeekMode.Start);
      const filled = readFully(this.#file, own);
      this.#file.seekSync(this.#received, Deno.SeekMode.Start);
      return filled;
    });
    return read === bytes.length && Buffer.compare(own, bytes) === 0;
  }

  /** Calls `written` as soon as they can be read, before they are hashed. */
  append(bytes: Uint8Array, written: () => void): void {
    onDisk(() => {
      for (let at = 0; at < bytes.length;) at += this.#file.writeSync(bytes.subarray(at));
    });
    this.#received += bytes.length;
    written();
    this.#hash.update(bytes);
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }
}

function isSame(a: NarSource, b: NarSource): boolean {
  return a.upstream === b.upstream && a.location === b.location;
}

function onDisk<Value>(work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    throw new FetchError("disk", messageOf(error));
  }
}
