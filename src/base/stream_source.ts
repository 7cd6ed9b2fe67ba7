import type { Bytes } from "./bytes.ts";
import type { BufferLender, ByteSource } from "./direct_stream.ts";

/** Copies the pieces of a stream into the reader's buffer. */
export class StreamSource implements ByteSource {
  readonly #reader: ReadableStreamDefaultReader<Bytes>;
  #piece = new Uint8Array(0);
  #taken = 0;

  constructor(stream: ReadableStream<Bytes>) {
    this.#reader = stream.getReader();
  }

  async read(lend: BufferLender): Promise<number> {
    while (this.#taken === this.#piece.length) {
      const { done, value } = await this.#reader.read();
      if (done) return 0;
      this.#piece = value;
      this.#taken = 0;
    }
    const left = this.#piece.subarray(this.#taken);
    const buffer = lend(left.length);
    const length = Math.min(left.length, buffer.length);
    buffer.set(left.subarray(0, length));
    this.#taken += length;
    return length;
  }

  /** A stalled client keeps the whole piece. */
  get heldBytes(): number {
    return this.#piece.buffer.byteLength;
  }

  rewind(byteLength: number): void {
    this.#taken -= byteLength;
  }

  close(): void {
    this.#piece = new Uint8Array(0);
    this.#taken = 0;
    // The reader is done: nobody needs the error of a stream's end.
    this.#reader.cancel().catch(() => undefined);
  }
}
