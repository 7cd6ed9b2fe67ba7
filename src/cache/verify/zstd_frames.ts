import type { Bytes } from "../../base/bytes.ts";

/**
 * The default limit of the zstd program. Compressors that do not know the NAR's size use windows up
 * to this, however small the NAR.
 */
export const WINDOW_LOG_MAX = 27;
const WINDOW_BYTES_MAX = 2 ** WINDOW_LOG_MAX;

const WINDOW_LOG_MIN = 10;
const BLOCK_BYTES_MAX = 128 * 1024;

/** Frames that may be empty. Behind them each frame needs some output, as a frame costs a call. */
const EMPTY_FRAMES_MAX = 16_000;
const FRAME_OUTPUT_BYTES = 256;

const MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;
const MAGIC_BYTES = 4;
const HEADER_BYTES_MAX = 18;
const BLOCK_HEADER_BYTES = 3;

/** The largest window of a decoder for this NAR size: one that holds more than the NAR. */
export function windowBytesMax(narSize: number): number {
  return Math.min(WINDOW_BYTES_MAX, 2 ** windowLogFor(narSize));
}

type FramePart = "magic" | "skippable size" | "header" | "block header" | "block" | "rest";

/**
 * Checks the frames of a zstd file before the decoder, as its bytes arrive. It checks every frame
 * header, and returns each in one piece.
 */
export class ZstdFrames {
  readonly #narSize: number;
  /** The bytes of a part that must be whole before it is parsed. */
  readonly #read = new Uint8Array(HEADER_BYTES_MAX);
  #readLength = 0;
  #part: FramePart = "magic";
  /** The count of bytes that the current part lacks. */
  #missing = MAGIC_BYTES;
  #windowBytes = 0;
  #hasChecksum = false;
  #isLastBlock = false;
  #frames = 0;
  #outputBytes = 0;

  constructor(narSize: number) {
    this.#narSize = narSize;
  }

  /** The decoder's memory for the current frame. */
  get windowBytes(): number {
    return this.#windowBytes;
  }

  /** The last piece that `checked` returned ended a frame. */
  get isBetweenFrames(): boolean {
    return this.#part === "magic" && this.#readLength === 0;
  }

  /**
   * The same bytes for the decoder. A window larger than the NAR becomes smaller: it would never
   * fill. Throws where a frame needs too large a window.
   */
  *checked(bytes: Bytes): Generator<Bytes> {
    for (let at = 0; at < bytes.length;) {
      const piece = bytes.subarray(at, at + this.#missing);
      at += piece.length;
      this.#missing -= piece.length;
      const isRead = this.#part !== "block" && this.#part !== "rest";
      if (isRead) {
        this.#read.set(piece, this.#readLength);
        this.#readLength += piece.length;
      }
      const length = this.#readLength;
      if (this.#missing === 0) this.#next();
      if (!isRead) yield piece;
      // A header that continues in the next part must be whole first.
      else if (this.#readLength === 0) yield this.#read.slice(0, length);
    }
  }

  /** The decoder gave out this many bytes. */
  decoded(byteLength: number): void {
    this.#outputBytes += byteLength;
  }

  /** The file is complete. Throws where its last frame is not. */
  end(): void {
    if (!this.isBetweenFrames) throw refusal("it ends too early");
  }

  #next(): void {
    switch (this.#part) {
      case "magic":
        return this.#magic();
      case "skippable size":
        return this.#begin("rest", view(this.#read).getUint32(MAGIC_BYTES, true));
      case "header":
        return this.#header();
      case "block header":
        return this.#blockHeader();
      case "block":
        if (!this.#isLastBlock) return this.#begin("block header", BLOCK_HEADER_BYTES);
        return this.#begin("rest", this.#hasChecksum ? 4 : 0);
      case "rest":
        return this.#begin("magic", MAGIC_BYTES);
    }
  }

  #magic(): void {
    const framesMax = EMPTY_FRAMES_MAX + this.#outputBytes / FRAME_OUTPUT_BYTES;
    if (++this.#frames > framesMax) throw refusal("it has too many small frames");
    const magic = view(this.#read).getUint32(0, true);
    if (magic === MAGIC) return this.#goOn("header", 1);
    if (magic >>> 4 !== SKIPPABLE_MAGIC >>> 4) throw refusal("no frame begins here");
    this.#goOn("skippable size", 4);
  }

  #header(): void {
    const descriptor = this.#read[MAGIC_BYTES] ?? 0;
    const length = headerLength(descriptor);
    if (this.#readLength < length) return this.#goOn("header", length - this.#readLength);
    if ((descriptor & RESERVED_BIT) !== 0) throw refusal("a frame of a later format");
    const isSingle = (descriptor & SINGLE_SEGMENT_BIT) !== 0;
    this.#windowBytes = isSingle
      ? contentSize(this.#read, descriptor)
      : windowOf(this.#read[WINDOW_AT] ?? 0);
    const bytesMax = isSingle ? windowBytesMax(this.#narSize) : WINDOW_BYTES_MAX;
    if (this.#windowBytes > bytesMax) {
      throw refusal(`a frame asks for a window of ${this.#windowBytes} bytes, not ${bytesMax}`);
    }
    if (!isSingle) this.#shrinkWindow();
    this.#hasChecksum = (descriptor & CHECKSUM_BIT) !== 0;
    this.#begin("block header", BLOCK_HEADER_BYTES);
  }

  #shrinkWindow(): void {
    const bytesMax = windowBytesMax(this.#narSize);
    if (bytesMax >= this.#windowBytes) return;
    this.#windowBytes = bytesMax;
    this.#read[WINDOW_AT] = (Math.log2(bytesMax) - WINDOW_LOG_MIN) << 3;
  }

  #blockHeader(): void {
    const [first = 0, second = 0, third = 0] = this.#read;
    const type = first >> 1 & 3;
    const size = first >> 3 | second << 5 | third << 13;
    if (type === 3) throw refusal("a block of no known type");
    if (size > BLOCK_BYTES_MAX) throw refusal(`a block of ${size} bytes`);
    this.#isLastBlock = (first & 1) === 1;
    this.#begin("block", type === RLE_BLOCK ? 1 : size);
  }

  /** Begins a part, without any of its bytes. */
  #begin(part: FramePart, byteLength: number): void {
    this.#readLength = 0;
    this.#part = part;
    this.#missing = byteLength;
    if (byteLength === 0) this.#next();
  }

  /** Begins a part that belongs to the last one. */
  #goOn(part: FramePart, byteLength: number): void {
    this.#part = part;
    this.#missing = byteLength;
  }
}

const WINDOW_AT = MAGIC_BYTES + 1;
const SINGLE_SEGMENT_BIT = 1 << 5;
const RESERVED_BIT = 1 << 3;
const CHECKSUM_BIT = 1 << 2;
const RLE_BLOCK = 1;

/** The length of a frame header, magic and descriptor included. */
function headerLength(descriptor: number): number {
  const isSingle = (descriptor & SINGLE_SEGMENT_BIT) !== 0;
  return MAGIC_BYTES + 1 + (isSingle ? 0 : 1) + dictionaryIdBytes(descriptor) +
    contentSizeBytes(descriptor);
}

function dictionaryIdBytes(descriptor: number): number {
  return [0, 1, 2, 4][descriptor & 3] ?? 0;
}

function contentSizeBytes(descriptor: number): number {
  const isSingle = (descriptor & SINGLE_SEGMENT_BIT) !== 0;
  return [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
}

/** The content size in the header of a frame without a window descriptor. */
function contentSize(header: Bytes, descriptor: number): number {
  const at = MAGIC_BYTES + 1 + dictionaryIdBytes(descriptor);
  let size = 0;
  for (let index = contentSizeBytes(descriptor) - 1; index >= 0; index--) {
    size = size * 256 + (header[at + index] ?? 0);
  }
  return contentSizeBytes(descriptor) === 2 ? size + 256 : size;
}

/** One byte more than the NAR, so that a larger output is detected. */
function windowLogFor(narSize: number): number {
  return Math.max(WINDOW_LOG_MIN, Math.ceil(Math.log2(narSize + 1)));
}

function windowOf(descriptor: number): number {
  const base = 2 ** (WINDOW_LOG_MIN + (descriptor >> 3));
  return base + base / 8 * (descriptor & 7);
}

function view({ buffer }: Bytes): DataView {
  return new DataView(buffer);
}

function refusal(state: string): Error {
  return new Error(`Cannot read zstd: ${state}`);
}
