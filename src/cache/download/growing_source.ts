import type { Bytes } from "../../base/bytes.ts";
import type { BufferLender, ByteSource } from "../../base/direct_stream.ts";
import type { Notifier } from "../../base/notifier.ts";
import { StreamSource } from "../../base/stream_source.ts";
import type { GrowingFile } from "./growing_file.ts";

export interface GrowingSourceParts {
  readonly file: GrowingFile;
  readonly start: number;
  /** Ends with the source. */
  readonly use: Disposable;
  /**
   * The count of bytes that may be read from a position on. 0 is the end; `undefined`: wait for
   * `changed`, and ask again. Throws when the download has failed.
   */
  readonly readable: (position: number) => number | undefined;
  readonly changed: Notifier;
  /** The bytes from a position on after that failure; `undefined`: nobody has them. */
  readonly restAfter: (
    failure: unknown,
    position: number,
  ) => ReadableStream<Bytes> | undefined;
}

/**
 * The bytes of a growing file, and the rest from elsewhere if it fails. State and file are read in
 * one turn, so nothing can change between them.
 */
export class GrowingSource implements ByteSource {
  readonly #parts: GrowingSourceParts;
  #position: number;
  #rest: StreamSource | undefined;
  #isClosed = false;

  constructor(parts: GrowingSourceParts) {
    this.#parts = parts;
    this.#position = parts.start;
  }

  async read(lend: BufferLender): Promise<number> {
    while (!this.#isClosed) {
      if (this.#rest !== undefined) return await this.#rest.read(lend);
      const length = this.#readable();
      if (length === 0) return 0;
      if (length !== undefined) return this.#fill(lend(length), length);
      if (this.#rest === undefined) await this.#parts.changed.notified();
    }
    return 0;
  }

  get heldBytes(): number {
    return this.#rest?.heldBytes ?? 0;
  }

  rewind(byteLength: number): void {
    if (this.#rest !== undefined) this.#rest.rewind(byteLength);
    else this.#position -= byteLength;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#rest?.close();
    this.#parts.use[Symbol.dispose]();
    // Its own read may wait.
    this.#parts.changed.notify();
  }

  #readable(): number | undefined {
    try {
      return this.#parts.readable(this.#position);
    } catch (failure) {
      const rest = this.#parts.restAfter(failure, this.#position);
      if (rest === undefined) throw failure;
      this.#rest = new StreamSource(rest);
      return undefined;
    }
  }

  #fill(buffer: Bytes, length: number): number {
    const bytes = buffer.subarray(0, length);
    this.#parts.file.readInto(bytes, this.#position);
    this.#position += bytes.length;
    return bytes.length;
  }
}
