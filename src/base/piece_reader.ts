import type { Timer } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";
import type { Bytes } from "./bytes.ts";

/** One read of the network returns 60 to 90 KiB at most. */
const READ_BYTES = 64 * 1024;

/** Handling a chunk below this size costs more than its bytes. */
const SMALL_BYTES = 4 * 1024;
const COLLECTED_BYTES_MAX = 16 * 1024;

/** It merges small chunks that arrive within this time of the last piece. */
const COLLECT_MS = 2;

type Chunk = ReadableStreamReadResult<Bytes>;

export interface PieceReaderOptions {
  /** True: the next read overwrites the piece. */
  readonly reuses?: boolean;
  /** Size of the buffer, where pieces share one. */
  readonly readBytes?: number;
}

/**
 * Reads a stream of bytes through one buffer. Each piece gets memory of at most twice its size: the
 * default reader spends a buffer of 64 KiB on a piece of one byte. A chunk after a pause returns at
 * once. It merges small chunks that follow within 2 ms into one piece.
 */
export class PieceReader {
  readonly #reader: ReadableStreamBYOBReader;
  readonly #reuses: boolean;
  readonly #readBytes: number;
  #buffer: ArrayBuffer | undefined;
  /** A running read, or one whose result belongs to the next piece. */
  #next: Promise<Chunk> | undefined;
  #collected: Bytes | undefined;
  #givenAtMs = -Infinity;

  constructor(stream: ReadableStream<Uint8Array>, options: PieceReaderOptions = {}) {
    this.#reader = stream.getReader({ mode: "byob" });
    this.#reuses = options.reuses ?? false;
    this.#readBytes = this.#reuses ? options.readBytes ?? READ_BYTES : READ_BYTES;
  }

  /** Resolves when the next piece, or the end, is here. */
  async ready(): Promise<void> {
    await this.#nextChunk();
  }

  /** The next piece; `undefined` at the end. One call at a time. */
  async read(): Promise<Bytes | undefined> {
    const { value, done } = await this.#nextChunk();
    this.#next = undefined;
    if (done || value === undefined) return undefined;
    const waitMs = this.#givenAtMs + COLLECT_MS - clock.nowMs();
    const piece = value.length < SMALL_BYTES && waitMs > 0
      ? await this.#collect(value, waitMs)
      : this.#owned(value);
    this.#givenAtMs = clock.nowMs();
    return piece;
  }

  /** Ends the stream; a running read sees its end. Never throws. */
  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined);
  }

  #nextChunk(): Promise<Chunk> {
    if (this.#next !== undefined) return this.#next;
    const buffer = this.#buffer ?? new ArrayBuffer(this.#readBytes);
    this.#buffer = undefined;
    this.#next = this.#reader.read(new Uint8Array(buffer));
    // It may fail before anybody awaits it.
    this.#next.catch(() => undefined);
    return this.#next;
  }

  /** Leaves an end, an error, or a chunk that does not fit to the next read. */
  async #collect(first: Bytes, waitMs: number): Promise<Bytes> {
    const collected = this.#collected ??= new Uint8Array(COLLECTED_BYTES_MAX);
    let length = 0;
    const add = (bytes: Bytes) => {
      collected.set(bytes, length);
      length += bytes.length;
      this.#buffer = bytes.buffer;
    };
    add(first);
    let timer: Timer | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = clock.after(waitMs, () => resolve(undefined));
    });
    const untilMs = clock.nowMs() + waitMs;
    try {
      do {
        const chunk = await Promise.race([this.#nextChunk(), late]);
        if (chunk === undefined || chunk.done) break;
        if (length + chunk.value.length > COLLECTED_BYTES_MAX) break;
        this.#next = undefined;
        add(chunk.value);
      } while (clock.nowMs() < untilMs);
    } catch {
      // The next read throws it.
    } finally {
      timer?.cancel();
    }
    return this.#reuses ? collected.subarray(0, length) : collected.slice(0, length);
  }

  #owned(piece: Bytes): Bytes {
    if (!this.#reuses && piece.length >= READ_BYTES / 2) return piece;
    this.#buffer = piece.buffer;
    return this.#reuses ? piece : piece.slice();
  }
}
