import bzip2 from "unbzip2-stream/lib/bzip2.js";
import { BitReader } from "./bit_reader.ts";

/** The library's parts, which it does not describe. */
interface BlockDecoder {
  /** The size of the blocks, in steps of 100,000 bytes. */
  header(bits: BitReader["read"]): number;
  /** Gives out a block byte by byte. `null` behind the last one of a stream. */
  decompress(
    ...given: [
      bits: BitReader["read"],
      out: (byte: number) => void,
      buffer: Int32Array,
      bufferLength: number,
      checksum: number,
    ]
  ): number | null;
  /** Of the last block, when its first byte is given out: where each byte's entries end. */
  readonly byteCount: Int32Array;
  readonly crcTable: readonly number[];
}

/** Besides the bytes of a block a stream has its tables, and its end. */
const BLOCK_OVERHEAD_BYTES = 25_000;
const BLOCK_STEP_BYTES = 100_000;
const HEADER_BYTES = 4;

/** Bytes of a block are given out in pieces of this size. */
const OUT_BYTES = 256 * 1024;

/** Undoes bzip2 a block at a time, and gives a block out little by little. Throws for damage. */
export async function* unbzip2(
  bytes: AsyncIterable<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<Uint8Array> {
  const input = new Input(bytes);
  // One for all streams: an empty one has 14 bytes, and would take 3.6 MB.
  let buffer = new Int32Array(0);
  try {
    for (let stream = 0; await input.has(HEADER_BYTES) || stream === 0; stream++) {
      const steps = decoder.header(input.bits.read);
      if (buffer.length !== steps * BLOCK_STEP_BYTES) {
        buffer = new Int32Array(steps * BLOCK_STEP_BYTES);
      }
      for (let checksum = 0;;) {
        await input.has(buffer.length + BLOCK_OVERHEAD_BYTES);
        const block = nextBlock(input.bits, { buffer, checksum });
        if (block === undefined) break;
        yield* bytesOf(block);
        checksum = block.checksum ^ (checksum << 1 | checksum >>> 31);
      }
    }
  } finally {
    await input.end();
  }
}

const decoder: BlockDecoder = bzip2;

/** A block whose bytes are to be found: each entry holds one, and where the next one is. */
interface Block {
  readonly entries: Int32Array;
  readonly count: number;
  readonly origin: number;
  readonly checksum: number;
}

const CHECKSUM_TABLE = Int32Array.from(bzip2.crcTable);

const STOPPED = new Error("Stopped before the first byte");

/**
 * Undoes all but the runs, and that is left to `bytesOf`: the library gives out the 46 MB that
 * forty bytes can hold at a stretch. `undefined` behind the last block of a stream.
 */
function nextBlock(
  bits: BitReader,
  { buffer, checksum }: { readonly buffer: Int32Array; readonly checksum: number },
): Block | undefined {
  try {
    decoder.decompress(bits.read, stop, buffer, buffer.length, checksum);
    return undefined;
  } catch (error) {
    if (error !== STOPPED) throw error;
  }
  const count = decoder.byteCount[255] ?? 0;
  return { entries: buffer, count, origin: bits.last24, checksum: bits.last32 };
}

function stop(): never {
  throw STOPPED;
}

/** Four bytes that are the same are followed by how often it comes again. */
function* bytesOf({ entries, count, origin, checksum }: Block): Generator<Uint8Array> {
  let entry = entries[origin] ?? 0;
  let [byte, same, crc] = [entry & 0xff, -1, -1];
  let [out, length] = [new Uint8Array(OUT_BYTES), 0];
  for (let left = count; left > 0; left--) {
    const previous = byte;
    entry = entries[entry >> 8] ?? 0;
    byte = entry & 0xff;
    const isCount = same++ === 3;
    const given = isCount ? previous : byte;
    for (let copies = isCount ? byte : 1; copies > 0; copies--) {
      crc = crc << 8 ^ (CHECKSUM_TABLE[(crc >>> 24 ^ given) & 0xff] ?? 0);
      out[length++] = given;
      if (length < OUT_BYTES) continue;
      yield out;
      [out, length] = [new Uint8Array(OUT_BYTES), 0];
    }
    if (isCount) byte = -1;
    if (byte !== previous) same = 0;
  }
  yield out.subarray(0, length);
  if ((crc ^ -1) !== checksum) throw new Error("Cannot read bzip2: a block's checksum is wrong");
}

/** The compressed bytes, as far as they are needed. */
class Input {
  readonly bits = new BitReader(() => {
    const chunk = this.#waiting.shift();
    if (chunk === undefined) throw new Error("Cannot read bzip2: it ends too early");
    return chunk;
  });
  readonly #chunks: AsyncIterator<Uint8Array<ArrayBuffer>>;
  readonly #waiting: Uint8Array<ArrayBuffer>[] = [];
  #byteLength = 0;
  #isOver = false;

  constructor(bytes: AsyncIterable<Uint8Array<ArrayBuffer>>) {
    this.#chunks = bytes[Symbol.asyncIterator]();
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
