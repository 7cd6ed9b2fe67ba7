/** One read of the network returns 60 to 90 KiB at most. */
const READ_BYTES = 64 * 1024;

type Piece = Uint8Array<ArrayBuffer>;

export interface PieceReaderOptions {
  /** True: the next read overwrites the piece. */
  readonly reuses?: boolean;
  /** Size of the buffer, where pieces share one. */
  readonly readBytes?: number;
}

/**
 * Reads a stream of bytes through one buffer. Each piece gets memory of at most twice its size: the
 * default reader spends a buffer of 64 KiB on a piece of one byte.
 */
export class PieceReader {
  readonly #reader: ReadableStreamBYOBReader;
  readonly #reuses: boolean;
  readonly #readBytes: number;
  #buffer: ArrayBuffer | undefined;

  constructor(stream: ReadableStream<Uint8Array>, options: PieceReaderOptions = {}) {
    this.#reader = stream.getReader({ mode: "byob" });
    this.#reuses = options.reuses ?? false;
    this.#readBytes = this.#reuses ? options.readBytes ?? READ_BYTES : READ_BYTES;
  }

  /** The next piece; `undefined` at the end. One call at a time. */
  async read(): Promise<Piece | undefined> {
    const buffer = this.#buffer ?? new ArrayBuffer(this.#readBytes);
    this.#buffer = undefined;
    const { value, done } = await this.#reader.read(new Uint8Array(buffer));
    if (done || value === undefined) return undefined;
    if (!this.#reuses && value.length >= READ_BYTES / 2) return value;
    this.#buffer = value.buffer;
    return this.#reuses ? value : value.slice();
  }

  /** Ends the stream; a running read sees its end. Never throws. */
  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined);
  }
}
