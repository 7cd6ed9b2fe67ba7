import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { messageOf } from "../../base/failure.ts";
import { readFully } from "../../base/files.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock, files } from "../../runtime/current.ts";
import type { OpenFile } from "../../runtime/files.ts";
import {
  FetchError,
  type FetchOrder,
  type FetchProgress,
  type NarSink,
  type ResumePoint,
} from "./nar_fetcher.ts";

export interface PartialFileParts {
  readonly order: FetchOrder;
  readonly allowance: WriteAllowance;
  readonly report: (progress: FetchProgress) => void;
}

/**
 * A NAR file on disk that grows. It writes and hashes synchronously, except for the wait for room:
 * use it in a Worker.
 */
export class PartialFile implements NarSink {
  readonly order: FetchOrder;
  readonly copies = true;
  readonly #allowance: WriteAllowance;
  readonly #report: (progress: FetchProgress) => void;
  readonly #progress: ProgressTeller;
  readonly #file: OpenFile;
  readonly #hash = createHash("sha256");
  #received = 0;
  #fileSize: number | undefined;
  /** The source of the first bytes; `only` while no other source has added bytes. */
  #origin:
    | { readonly source: NarSource; readonly tag: string | undefined; only: boolean }
    | undefined;

  constructor({ order, allowance, report }: PartialFileParts) {
    this.order = order;
    this.#allowance = allowance;
    this.#report = report;
    this.#progress = new ProgressTeller(report);
    this.#fileSize = order.fileSize;
    this.#file = onDisk(() =>
      files.openSync(order.path, { read: true, write: true, truncate: true })
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

  /** Point from which a source continues. Without a known hash, only the same source's file can. */
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
      this.#report({ type: "opened", ...(fileSize === undefined ? {} : { fileSize }) });
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

/** The time between two messages: readers hardly notice it, and messages cost. */
const REPORT_EVERY_MS = 2;

/** Reports the size of a growing file: at once after a pause, else every 2 ms. */
class ProgressTeller {
  readonly #report: (progress: FetchProgress) => void;
  #reportedAtMs = -Infinity;
  #received = 0;
  #reported = 0;
  #timer: Timer | undefined;

  constructor(report: (progress: FetchProgress) => void) {
    this.#report = report;
  }

  grown(received: number): void {
    this.#received = received;
    if (this.#timer !== undefined) return;
    const waitMs = this.#reportedAtMs + REPORT_EVERY_MS - clock.nowMs();
    if (waitMs <= 0) this.flush();
    else this.#timer = clock.after(waitMs, () => this.flush());
  }

  /** Reports the latest size at once. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#received === this.#reported) return;
    this.#reportedAtMs = clock.nowMs();
    this.#reported = this.#received;
    this.#report({ type: "bytes", received: this.#received });
  }
}

/** The bytes that a file may have on disk; more must be reserved before a write. */
export class WriteAllowance {
  readonly #ask: (bytes: number) => Promise<number>;
  #bytes: number;

  constructor(bytes: number, ask: (bytes: number) => Promise<number>) {
    this.#bytes = bytes;
    this.#ask = ask;
  }

  /** True when `bytes` may be written without a reservation. */
  has(bytes: number): boolean {
    return bytes <= this.#bytes;
  }

  /** Resolves when `bytes` may be written. Throws FetchError "room" when they do not fit. */
  async need(bytes: number): Promise<void> {
    if (this.has(bytes)) return;
    this.#bytes = await this.#ask(bytes);
    if (!this.has(bytes)) throw new FetchError("room", `there is no room for ${bytes} bytes`);
  }
}
