import { BufferPool } from "./buffer_pool.ts";

/** Read size of large bodies: measured with 64 KiB (half as fast) to 1 MiB (no faster). */
const READ_BYTES = 256 * 1024;
const READS = new BufferPool(READ_BYTES, 16);

const OVER = { done: true, value: undefined } as const;

/** Reads a stream piece by piece, into one buffer where the stream can do that. */
export class BodyReader implements Disposable {
  readonly #into: ReadableStreamBYOBReader | undefined;
  readonly #plain: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
  #buffer: Uint8Array<ArrayBuffer> | undefined;
  #isOver = false;

  constructor(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
    try {
      this.#into = stream.getReader({ mode: "byob" });
      this.#buffer = READS.take();
    } catch {
      // No stream of bytes.
      this.#plain = stream.getReader();
    }
  }

  /** Good until the next call; `undefined` at the end. Throws as the stream does. */
  async next(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    for (;;) {
      const { done, value } = await this.#read() ?? OVER;
      if (done) this.#isOver = true;
      // The end may come with an empty view of the buffer.
      if (done) return undefined;
      // A piece without bytes would be the last chunk.
      if (value.length > 0) return value;
    }
  }

  /** A read under way ends at once. */
  cancel(): void {
    this.#isOver = true;
    const cancelled = this.#into?.cancel() ?? this.#plain?.cancel();
    // What a stream has to say about its end is of no use to a client that is gone.
    cancelled?.catch(() => undefined);
  }

  [Symbol.dispose](): void {
    if (!this.#isOver) this.cancel();
    if (this.#buffer !== undefined) READS.give(this.#buffer);
    this.#buffer = undefined;
  }

  #read() {
    return this.#into === undefined ? this.#plain?.read() : this.#readInto(this.#into);
  }

  async #readInto(reader: ReadableStreamBYOBReader) {
    const buffer = this.#buffer ?? READS.take();
    this.#buffer = undefined;
    const result = await reader.read(buffer);
    // The buffer was handed over and comes back as another one over the same bytes.
    if (result.value !== undefined) this.#buffer = new Uint8Array(result.value.buffer);
    return result;
  }
}
