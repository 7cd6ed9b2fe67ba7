import { type ByteSource, DirectStream } from "../../base/direct_stream.ts";
import { BufferPool } from "./buffer_pool.ts";

/** Read size of large bodies: measured with 64 KiB (half as fast) to 1 MiB (no faster). */
const READ_BYTES = 256 * 1024;
const READS = new BufferPool(READ_BYTES, 64);

/** Where all of those are in use, and for a client that takes nothing. */
const SMALL_BYTES = 16 * 1024;
const SMALL_READS = new BufferPool(SMALL_BYTES, 64);

type Piece = Uint8Array<ArrayBuffer>;

const NO_BYTES: Piece = new Uint8Array(0);

/**
 * Reads a body piece by piece, into one buffer where it can be read at its source. It alone refers
 * to the piece: a buffer that is given up is free, whatever still waits for the client.
 */
export class BodyReader implements Disposable {
  readonly #source: ByteSource | undefined;
  readonly #reader: ReadableStreamDefaultReader<Piece> | undefined;
  #buffer: Piece | undefined;
  #piece = NO_BYTES;
  /** True while the rest of the piece may be given up. */
  #isWaiting = false;
  #isReading = false;
  #isOver = false;

  constructor(stream: ReadableStream<Piece>) {
    if (stream instanceof DirectStream) this.#source = stream.source;
    else this.#reader = stream.getReader();
  }

  /** What of the last piece was not taken yet. */
  get piece(): Piece {
    return this.#piece;
  }

  /** Reads the next piece and says how long it is; 0 at the end. Throws as the stream does. */
  async next(): Promise<number> {
    this.#piece = NO_BYTES;
    this.#piece =
      await (this.#source === undefined ? this.#pieceOf(this.#reader) : this.#read(this.#source));
    if (this.#piece.length === 0) this.#isOver = true;
    return this.#piece.length;
  }

  /** Writes from the piece, and says how much; a part of the piece may come again later. */
  async write(write: (bytes: Piece) => Promise<number>): Promise<number> {
    const written = await write(this.#piece);
    this.#piece = this.#piece.subarray(written);
    if (this.#piece.length === 0 || this.#buffer?.length !== READ_BYTES) return written;
    return written + await this.#writeCopy(write);
  }

  /** A small copy waits for a client that takes its time, so that the buffer can be given up. */
  async #writeCopy(write: (bytes: Piece) => Promise<number>): Promise<number> {
    const buffer = SMALL_READS.take();
    const length = Math.min(buffer.length, this.#piece.length);
    buffer.set(this.#piece.subarray(0, length));
    this.#piece = this.#piece.subarray(length);
    this.#isWaiting = true;
    try {
      for (let written = 0; written < length;) {
        written += await write(buffer.subarray(written, length));
      }
    } finally {
      this.#isWaiting = false;
    }
    SMALL_READS.give(buffer);
    return length;
  }

  /** Gives the buffer back while its client waits; what lies in it comes with the next piece. */
  shed(): void {
    if (!this.#isWaiting || this.#isOver || this.#source === undefined) return;
    if (this.#piece.length > 0) this.#source.rewind(this.#piece.length);
    this.#giveBuffer();
  }

  /** A read under way ends, or comes to nothing. */
  cancel(): void {
    this.#isOver = true;
    this.#source?.close();
    // What a stream has to say about its end is of no use to a client that is gone.
    this.#reader?.cancel().catch(() => undefined);
  }

  [Symbol.dispose](): void {
    if (!this.#isOver) this.cancel();
    this.#source?.close();
    this.#giveBuffer();
  }

  #giveBuffer(): void {
    if (this.#buffer !== undefined) {
      const pool = this.#buffer.length === READ_BYTES ? READS : SMALL_READS;
      // Another thread may still write into a buffer whose read was given up.
      if (this.#isReading) pool.lose();
      else pool.give(this.#buffer);
    }
    this.#buffer = undefined;
    this.#piece = NO_BYTES;
  }

  async #read(source: ByteSource): Promise<Piece> {
    if (this.#isOver) return NO_BYTES;
    if (this.#buffer?.length !== READ_BYTES) this.#giveBuffer();
    const buffer = this.#buffer ??= READS.takeKept() ?? SMALL_READS.take();
    this.#isReading = true;
    const length = await source.read(buffer);
    this.#isReading = false;
    return buffer.subarray(0, length);
  }

  async #pieceOf(reader: ReadableStreamDefaultReader<Piece> | undefined): Promise<Piece> {
    for (;;) {
      const { done, value } = await reader?.read() ?? { done: true };
      if (done) return NO_BYTES;
      // A piece without bytes would be the last chunk.
      if (value !== undefined && value.length > 0) return value;
    }
  }
}
