import bzip2 from "unbzip2-stream/lib/bzip2.js";
import type { Bytes } from "../../base/bytes.ts";
import { BitReader } from "./bit_reader.ts";

/** The parts of the library that its types lack. */
interface BlockDecoder {
  /** The block size, in steps of 100,000 bytes. */
  header(bits: BitReader["read"]): number;
  /** Returns a block byte by byte; `null` after the last block of a stream. */
  decompress(
    ...given: [
      bits: BitReader["read"],
      out: (byte: number) => void,
      buffer: Int32Array,
      bufferLength: number,
      checksum: number,
    ]
  ): number | null;
  /** Ends of each byte's entries in the last block, once its first byte is returned. */
  readonly byteCount: Int32Array;
  readonly crcTable: readonly number[];
}

/** The overhead of a stream beside its blocks: tables, and its end. */
const BLOCK_OVERHEAD_BYTES = 25_000;
const BLOCK_STEP_BYTES = 100_000;
const HEADER_BYTES = 4;

/** Streams that may be empty. Behind them each stream needs some output, as a stream costs time. */
const EMPTY_STREAMS_MAX = 1_000;
const STREAM_OUTPUT_BYTES = 256;

/** The size of the output pieces. */
const OUT_BYTES = 256 * 1024;

/** Decompresses bzip2 block by block, each in small pieces. Throws for damage. */
export async function* unbzip2(
  bytes: AsyncIterable<Bytes>,
): AsyncGenerator<Uint8Array> {
  const input = new Input(bytes);
  // One buffer for all streams: an empty stream has 14 bytes, and would take 3.6 MB.
  let buffer = new Int32Array(0);
  let outputBytes = 0;
  try {
    for (let stream = 0; await input.has(HEADER_BYTES) || stream === 0; stream++) {
      if (stream > EMPTY_STREAMS_MAX + outputBytes / STREAM_OUTPUT_BYTES) {
        throw new Error("Cannot read bzip2: it has too many small streams");
      }
      const steps = decoder.header(input.bits.read);
      if (buffer.length !== steps * BLOCK_STEP_BYTES) {
        buffer = new Int32Array(steps * BLOCK_STEP_BYTES);
      }
      for (let checksum = 0;;) {
        await input.has(buffer.length + BLOCK_OVERHEAD_BYTES);
        const block = nextBlock(input.bits, { buffer, checksum });
        if (block === undefined) break;
        for (const piece of bytesOf(block)) {
          outputBytes += piece.length;
          yield piece;
        }
        checksum = block.checksum ^ (checksum << 1 | checksum >>> 31);
      }
    }
  } finally {
    await input.end();
  }
}

const decoder: BlockDecoder = bzip2;

/** A block before its bytes are found: each entry holds a byte, and the index of the next. */
interface Block {
  readonly entries: Int32Array;
  readonly count: number;
  readonly origin: number;
  readonly checksum: number;
}

const CHECKSUM_TABLE = Int32Array.from(bzip2.crcTable);

const STOPPED = new Error("Stopped before the first byte");

/**
 * Decodes a block up to its runs, which `bytesOf` expands: the library would return the 46 MB of
 * forty bytes at once. `undefined` after the last block of a stream.
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

/** Bytes of a block without its runs: after four equal bytes comes the count of further ones. */
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

/** The compressed bytes, read on demand. */
class Input {
  readonly bits = new BitReader(() => {
    const chunk = this.#waiting.shift();
    if (chunk === undefined) throw new Error("Cannot read bzip2: it ends too early");
    return chunk;
  });
  readonly #chunks: AsyncIterator<Bytes>;
  readonly #waiting: Bytes[] = [];
  #byteLength = 0;
  #isOver = false;

  constructor(bytes: AsyncIterable<Bytes>) {
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
