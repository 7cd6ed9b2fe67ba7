import bitIterator from "unbzip2-stream/lib/bit_iterator.js";
import bzip2 from "unbzip2-stream/lib/bzip2.js";

/** The library's parts, which it does not describe. */
interface BlockDecoder {
  /** The size of the blocks, in steps of 100,000 bytes. */
  header(bits: BitReader): number;
  /** Gives out a block byte by byte. `null` behind the last one of a stream; else its checksum. */
  decompress(
    ...given: [
      bits: BitReader,
      out: (byte: number) => void,
      buffer: Int32Array,
      bufferLength: number,
      checksum: number,
    ]
  ): number | null;
}

interface BitReader {
  (count: number): number;
  readonly bytesRead: number;
}

/** Besides the bytes of a block a stream has its tables, and its end. */
const BLOCK_OVERHEAD_BYTES = 25_000;
const BLOCK_STEP_BYTES = 100_000;
const HEADER_BYTES = 4;

/** Bytes of a block are given out in pieces of this size. */
const OUT_BYTES = 256 * 1024;

/**
 * Undoes bzip2 a block at a time, and gives a block out before the next one is begun. Forty bytes
 * can hold a block of 45 MB: one that goes beyond `bytesMax` is broken off. Throws for damage.
 */
export async function* unbzip2(
  bytes: AsyncIterable<Uint8Array<ArrayBuffer>>,
  bytesMax: number,
): AsyncGenerator<Uint8Array> {
  const input = new Input(bytes);
  // One for all streams: an empty one has 14 bytes, and would take 3.6 MB.
  let buffer = new Int32Array(0);
  try {
    for (let stream = 0; await input.has(HEADER_BYTES) || stream === 0; stream++) {
      const steps = decoder.header(input.bits);
      if (buffer.length !== steps * BLOCK_STEP_BYTES) {
        buffer = new Int32Array(steps * BLOCK_STEP_BYTES);
      }
      for (let checksum: number | null = 0; checksum !== null;) {
        await input.has(buffer.length + BLOCK_OVERHEAD_BYTES);
        const out = new Output(bytesMax);
        checksum = decoder.decompress(input.bits, out.add, buffer, buffer.length, checksum);
        yield* out.pieces();
      }
    }
  } finally {
    await input.end();
  }
}

const decoder: BlockDecoder = bzip2;

/** The compressed bytes, as far as they are needed. */
class Input {
  readonly bits: BitReader;
  readonly #chunks: AsyncIterator<Uint8Array<ArrayBuffer>>;
  readonly #waiting: Uint8Array<ArrayBuffer>[] = [];
  #byteLength = 0;
  #isOver = false;

  constructor(bytes: AsyncIterable<Uint8Array<ArrayBuffer>>) {
    this.#chunks = bytes[Symbol.asyncIterator]();
    // It asks for its first bytes when it is made.
    this.#waiting.push(new Uint8Array(0));
    this.bits = bitIterator(() => {
      const chunk = this.#waiting.shift();
      if (chunk === undefined) throw new Error("Cannot read bzip2: it ends too early");
      return chunk;
    });
  }

  /** Reads until `byteLength` bytes are here; false where the file has fewer. */
  async has(byteLength: number): Promise<boolean> {
    while (!this.#isOver && this.#byteLength - this.bits.bytesRead < byteLength) {
      const { value, done } = await this.#chunks.next();
      if (done) this.#isOver = true;
      else if (value.length > 0) {
        this.#waiting.push(value);
        this.#byteLength += value.length;
      }
    }
    return this.#byteLength - this.bits.bytesRead >= byteLength;
  }

  async end(): Promise<void> {
    await this.#chunks.return?.();
  }
}

/** The bytes of one block. */
class Output {
  readonly #bytesMax: number;
  readonly #full: Uint8Array[] = [];
  #last = new Uint8Array(OUT_BYTES);
  #lastLength = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  readonly add = (byte: number): void => {
    if (this.#lastLength === OUT_BYTES) this.#append();
    this.#last[this.#lastLength++] = byte;
  };

  *pieces(): Generator<Uint8Array> {
    yield* this.#full.splice(0);
    yield this.#last.subarray(0, this.#lastLength);
  }

  #append(): void {
    this.#full.push(this.#last);
    if (this.#full.length * OUT_BYTES > this.#bytesMax) {
      throw new Error(`it holds more than ${this.#bytesMax} bytes`);
    }
    this.#last = new Uint8Array(OUT_BYTES);
    this.#lastLength = 0;
  }
}
