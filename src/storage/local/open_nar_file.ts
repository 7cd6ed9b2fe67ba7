import type { Bytes } from "../../base/bytes.ts";
import { type BufferLender, DirectStream } from "../../base/direct_stream.ts";
import { Failure } from "../../base/failure.ts";
import { readFully } from "../../base/files.ts";
import type { Seal } from "../../nix/stored_name.ts";
import { clock } from "../../runtime/current.ts";
import type { OpenFile } from "../../runtime/files.ts";
import type { ReadOptions, StoredNar } from "../nar_store.ts";
import { sealOf, unsettledMsOf } from "./seal_of.ts";

/** Read size of large files: measured as the fastest on Deno 2.6.8 (64 KiB halves it). */
const READ_BYTES = 256 * 1024;

/** An open file handed out as a NAR. */
export class OpenNarFile implements StoredNar {
  readonly fileSize: number;
  readonly seal: Seal;
  readonly unsettledMs: number;
  readonly #file: OpenFile;
  #open = true;
  #signal: AbortSignal | undefined;

  constructor(file: OpenFile) {
    this.#file = file;
    const info = file.statSync();
    this.fileSize = info.size;
    this.seal = sealOf(info);
    this.unsettledMs = unsettledMsOf(info, clock.wallMs());
  }

  /** Reads synchronously: a hop to another thread costs more than the copy of a small file. */
  async bytes({ signal }: ReadOptions = {}): Promise<Bytes> {
    try {
      signal?.throwIfAborted();
      const bytes = new Uint8Array(this.fileSize);
      if (readFully(this.#file, bytes) < bytes.length) throw shortFile();
      if (!this.#isSealed()) throw new Failure("broken", "Cannot read NAR file: it was changed");
      return bytes;
    } finally {
      this.#close();
    }
  }

  read(start: number, end: number, { signal }: ReadOptions = {}): DirectStream {
    let left = end - start;
    if (start > 0) this.#file.seekSync(start, Deno.SeekMode.Start);
    this.#endWith(signal);
    const read = async (lend: BufferLender) => {
      if (left === 0) return 0;
      signal?.throwIfAborted();
      const into = lend(left);
      const got = await this.#file.read(left < into.length ? into.subarray(0, left) : into);
      if (got === null) throw shortFile();
      left -= got;
      return got;
    };
    const rewind = (byteLength: number) => {
      left += byteLength;
      this.#file.seekSync(-byteLength, Deno.SeekMode.Current);
    };
    return new DirectStream({ read, rewind, close: () => this.#close() }, READ_BYTES);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
  }

  /** True while the file is the one of the seal. Its removal changes its times, no bytes. */
  #isSealed(): boolean {
    const info = this.#file.statSync();
    return info.nlink === 0 || sealOf(info) === this.seal;
  }

  #endWith(signal: AbortSignal | undefined): void {
    if (signal?.aborted) this.#close();
    this.#signal = signal;
    signal?.addEventListener("abort", this.#close);
  }

  readonly #close = () => {
    if (this.#open) this.#file.close();
    this.#open = false;
    this.#signal?.removeEventListener("abort", this.#close);
  };
}

function shortFile(): Failure {
  return new Failure("broken", "Cannot read NAR file: it became shorter while it was read");
}
