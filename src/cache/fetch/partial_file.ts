import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { messageOf } from "../../base/failure.ts";
import { readFully } from "../../base/read_fully.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import { FetchError } from "./fetch_error.ts";
import { ProgressTeller } from "./fetch_progress.ts";
import type { FetchOrder, FetchProgress } from "./nar_fetcher.ts";
import type { NarSink, ResumePoint } from "./nar_sink.ts";
import type { WriteAllowance } from "./write_allowance.ts";

export interface PartialFileParts {
  readonly order: FetchOrder;
  readonly allowance: WriteAllowance;
  readonly tell: (progress: FetchProgress) => void;
}

/**
 * A NAR file on disk that grows. It writes and hashes synchronously, except for the wait for room:
 * use it in a Worker.
 */
export class PartialFile implements NarSink {
  readonly order: FetchOrder;
  readonly copies = true;
  readonly #allowance: WriteAllowance;
  readonly #tell: (progress: FetchProgress) => void;
  readonly #progress: ProgressTeller;
  readonly #file: Deno.FsFile;
  readonly #hash = createHash("sha256");
  #received = 0;
  #fileSize: number | undefined;
  /** The source of the first bytes; `only` while no other source has added bytes. */
  #origin:
    | { readonly source: NarSource; readonly tag: string | undefined; only: boolean }
    | undefined;

  constructor({ order, allowance, tell }: PartialFileParts) {
    this.order = order;
    this.#allowance = allowance;
    this.#tell = tell;
    this.#progress = new ProgressTeller(tell);
    this.#fileSize = order.fileSize;
    this.#file = onDisk(() =>
      Deno.openSync(order.path, { read: true, write: true, truncate: true })
    );
  }

  get received(): number {
    return this.#received;
  }

  get fileSize(): number | undefined {
    return this.#fileSize;
  }

  get digest(): Uint8Array {
    return this.#hash.copy().digest();
  }

  /** Without a known hash only the same file of the same source can continue. */
  resumeAt(source: NarSource): ResumePoint {
    if (this.#received === 0) return { offset: 0 };
    if (this.order.anySource) return { offset: this.#received };
    const { only, source: first, tag } = this.#origin ?? {};
    if (!only || first === undefined || !isSame(first, source)) return { offset: 0 };
    return { offset: this.#received, ...(tag === undefined ? {} : { tag }) };
  }

  begin(source: NarSource, { fileSize, tag }: { fileSize?: number; tag?: string }): void {
    if (this.#received === 0) {
      this.#origin = { source, tag, only: true };
      this.#fileSize = this.order.fileSize ?? fileSize;
      this.#tell({ type: "opened", ...(fileSize === undefined ? {} : { fileSize }) });
    } else if (this.#origin !== undefined && !isSame(this.#origin.source, source)) {
      this.#origin.only = false;
    }
  }

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

  write(bytes: Uint8Array): Promise<void> | void {
    // Headers alone reserve no space for the whole file: many a proxy sends nothing after them.
    const neededBytes = this.#fileSize ?? this.#received + bytes.length;
    if (this.#allowance.has(neededBytes)) return this.#append(bytes);
    return this.#allowance.need(neededBytes).then(() => this.#append(bytes));
  }

  pause(): void {
    this.#progress.flush();
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }

  /** Reports the bytes before it hashes them, so that readers do not wait for that. */
  #append(bytes: Uint8Array): void {
    onDisk(() => {
      for (let at = 0; at < bytes.length;) at += this.#file.writeSync(bytes.subarray(at));
    });
    this.#received += bytes.length;
    this.#progress.grown(this.#received);
    this.#hash.update(bytes);
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
