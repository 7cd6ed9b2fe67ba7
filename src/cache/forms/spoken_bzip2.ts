import type { Bytes } from "../../base/bytes.ts";
import type { NarSpeaker } from "../verify/nar_verifier.ts";
import { Rotations } from "./rotations.ts";

// bzip2 has no stored blocks: its runs, its sorted rotations and the ranks of its bytes have to be
// right. But its codes are free, and so is what describes them. So here they have about eight bits,
// and each block is filled up to what the worst NAR bytes would need: the size is known beforehand.

/** The NAR bytes of each block but the last one: two milliseconds of work. */
const BLOCK_BYTES = 16_384;

/** "BZh1": blocks of at most 100,000 bytes. */
const HEAD = [0x42, 0x5a, 0x68, 0x31];
const BLOCK_MAGIC = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
const END_MAGIC = [0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
const END_BYTES = END_MAGIC.length + 4;

/** Behind four equal bytes comes the count of further ones. */
const RUN_BYTES = 4;
const RUN_BYTES_MAX = 255;

/** The two digits of a count of zero ranks, the ranks from 1 to 255, and the end of the block. */
const SYMBOLS = 258;
const END_SYMBOL = 257;

/** The first symbols have themselves in 8 bits as codes. The last four have 9: no code is free. */
const SHORT_SYMBOLS = 254;
const LONG_CODES = 508 - SHORT_SYMBOLS;

/** How one of both tables tells these lengths: 8, up once. */
const TABLES = 2;
const TABLE_BITS = 5 + SYMBOLS + 2;

/** Each selects the table of fifty symbols. Three are never used: each may have a further bit. */
const SELECTOR_SYMBOLS = 50;
const SPARE_SELECTORS = 3;

/** The map says that all 256 bytes occur. */
const MAP_BYTES = 2 + 32;
const BLOCK_HEAD_BITS = 48 + 32 + 1 + 24 + 8 * MAP_BYTES + 3 + 15 + TABLES * TABLE_BITS;

const CHECKSUM_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit++) crc = crc < 0 ? crc << 1 ^ 0x04c11db7 : crc << 1;
  return crc;
});

/** The bytes of a NAR's spoken file. */
export function spokenBzip2Size(narSize: number): number {
  const last = narSize % BLOCK_BYTES;
  const blocks = (narSize - last) / BLOCK_BYTES * blockSize(BLOCK_BYTES);
  return HEAD.length + blocks + (last === 0 ? 0 : blockSize(last)) + END_BYTES;
}

/** The size of a block that holds so many bytes, where each symbol has the longest code. */
function blockSize(narBytes: number): number {
  const bits = BLOCK_HEAD_BITS + selectorCount(narBytes) + 9 * symbolsMax(narBytes);
  return Math.ceil(bits / 8);
}

function selectorCount(narBytes: number): number {
  return Math.ceil(symbolsMax(narBytes) / SELECTOR_SYMBOLS) + SPARE_SELECTORS;
}

function symbolsMax(narBytes: number): number {
  return narBytes + Math.floor(narBytes / RUN_BYTES) + 1;
}

/**
 * Speaks a NAR of a known size as bzip2. The same NAR makes the same bytes. Use it in a Worker: 10 MB
 * take a second.
 */
export class Bzip2Speaker implements NarSpeaker {
  readonly #narSize: number;
  readonly #from: number;
  #spoken = 0;
  readonly #nar = new Uint8Array(BLOCK_BYTES);
  #taken = 0;
  readonly #bytes = new Uint8Array(symbolsMax(BLOCK_BYTES));
  readonly #rotations = new Rotations(symbolsMax(BLOCK_BYTES));
  readonly #symbols = new Uint16Array(symbolsMax(BLOCK_BYTES));
  #checksum = 0;
  /** What comes before the next block. */
  #before = HEAD;

  /** Blocks that end before the byte `from` are of the right size, and nothing else. */
  constructor(narSize: number, from = 0) {
    this.#narSize = narSize;
    this.#from = from;
  }

  /** Each block as soon as it is full. Throws where the NAR is larger than announced. */
  *speak(piece: Uint8Array): Generator<Bytes> {
    if (this.#taken + piece.length > this.#narSize) throw this.#wrongSize("more");
    for (let at = 0; at < piece.length;) {
      const inBlock = this.#taken % BLOCK_BYTES;
      const part = piece.subarray(at, at + BLOCK_BYTES - inBlock);
      this.#nar.set(part, inBlock);
      at += part.length;
      this.#taken += part.length;
      if (this.#taken % BLOCK_BYTES === 0) yield this.#block(this.#nar);
    }
  }

  /** The last block, and the end. Throws where the NAR is smaller than announced. */
  end(): Bytes {
    if (this.#taken < this.#narSize) throw this.#wrongSize("fewer");
    const rest = this.#nar.subarray(0, this.#taken % BLOCK_BYTES);
    const block = rest.length === 0 ? [] : this.#block(rest);
    const end = new BitWriter(this.#before.length + END_BYTES);
    end.bytesOf(this.#before).bytesOf(END_MAGIC).word(this.#checksum);
    return Uint8Array.of(...block, ...end.bytes);
  }

  #block(nar: Uint8Array): Bytes {
    const { bytes, checksum } = this.#withRuns(nar);
    this.#checksum = checksum ^ (this.#checksum << 1 | this.#checksum >>> 31);
    const out = new BitWriter(this.#before.length + blockSize(nar.length));
    out.bytesOf(this.#before);
    this.#before = [];
    this.#spoken += out.bytes.length;
    if (this.#spoken <= this.#from) return out.bytes;

    const order = this.#rotations.sorted(bytes);
    const { symbols, longCount } = this.#symbolsOf(bytes, order);
    const selectors = selectorCount(nar.length);
    const symbolBits = 8 * symbols.length + longCount;
    const spareBits = 8 * blockSize(nar.length) - BLOCK_HEAD_BITS - selectors - symbolBits;
    out.bytesOf(BLOCK_MAGIC).word(checksum).bits(0, 1);
    out.bits(order.indexOf(0), 24);
    for (let at = 0; at < MAP_BYTES; at++) out.bits(0xff, 8);
    out.bits(TABLES, 3).bits(selectors, 15);
    for (let left = selectors; left > 0; left--) {
      if (left > spareBits % 4) out.bits(0, 1);
      else out.bits(0b10, 2);
    }
    writeTable(out, 0);
    writeTable(out, spareBits >> 2);
    for (const symbol of symbols) {
      if (symbol < SHORT_SYMBOLS) out.bits(symbol, 8);
      else out.bits(symbol + LONG_CODES, 9);
    }
    return out.bytes;
  }

  /** The bytes of a block with its runs counted, and the checksum without. */
  #withRuns(nar: Uint8Array): { readonly bytes: Uint8Array; readonly checksum: number } {
    const bytes = this.#bytes;
    let [length, crc] = [0, -1];
    for (let at = 0; at < nar.length;) {
      const byte = nar[at] ?? 0;
      let run = 0;
      for (; run < RUN_BYTES_MAX && nar[at] === byte; run++, at++) {
        crc = crc << 8 ^ (CHECKSUM_TABLE[(crc >>> 24 ^ byte) & 0xff] ?? 0);
        if (run < RUN_BYTES) bytes[length++] = byte;
      }
      if (run >= RUN_BYTES) bytes[length++] = run - RUN_BYTES;
    }
    return { bytes: bytes.subarray(0, length), checksum: crc ^ -1 };
  }

  /** The last bytes of the sorted rotations, each by how many others came since it was seen. */
  #symbolsOf(bytes: Uint8Array, order: Int32Array) {
    const symbols = this.#symbols;
    const recent = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    let [count, longCount, zeros] = [0, 1, 0];
    const endZeros = () => {
      // In the digits 1 and 2, the lowest first.
      for (; zeros > 0; zeros = zeros - 1 >> 1) symbols[count++] = zeros & 1 ? 0 : 1;
    };
    for (const start of order) {
      const byte = bytes[start === 0 ? bytes.length - 1 : start - 1] ?? 0;
      let newer = recent[0] ?? 0;
      if (newer === byte) {
        zeros++;
        continue;
      }
      endZeros();
      let rank = 0;
      while (newer !== byte) {
        const older = recent[++rank] ?? 0;
        recent[rank] = newer;
        newer = older;
      }
      recent[0] = byte;
      symbols[count++] = rank + 1;
      if (rank + 1 >= SHORT_SYMBOLS) longCount++;
    }
    endZeros();
    symbols[count++] = END_SYMBOL;
    return { symbols: symbols.subarray(0, count), longCount };
  }

  #wrongSize(than: "more" | "fewer"): Error {
    return new Error(`Cannot speak NAR: it has ${than} than ${this.#narSize} bytes`);
  }
}

/** The lengths of the codes. `detours`: how often the first one goes up and down, in 4 bits each. */
function writeTable(out: BitWriter, detours: number): void {
  out.bits(8, 5);
  for (let left = detours; left > 0; left--) out.bits(0b1011, 4);
  for (let symbol = 0; symbol < SYMBOLS; symbol++) {
    if (symbol === SHORT_SYMBOLS) out.bits(0b10, 2);
    out.bits(0, 1);
  }
}

/** Writes the highest bit first. Its caller fills the last byte. */
class BitWriter {
  readonly bytes: Bytes;
  #byteCount = 0;
  #held = 0;
  #heldBits = 0;

  constructor(byteLength: number) {
    this.bytes = new Uint8Array(byteLength);
  }

  /** The lowest bits of a value: at most 24. */
  bits(value: number, count: number): this {
    this.#held = this.#held << count | value;
    this.#heldBits += count;
    while (this.#heldBits >= 8) {
      this.#heldBits -= 8;
      this.bytes[this.#byteCount++] = this.#held >> this.#heldBits;
    }
    return this;
  }

  bytesOf(values: readonly number[]): this {
    for (const value of values) this.bits(value, 8);
    return this;
  }

  word(value: number): this {
    return this.bits(value >>> 16, 16).bits(value & 0xffff, 16);
  }
}
