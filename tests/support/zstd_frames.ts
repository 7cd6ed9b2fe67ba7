import type { Bytes } from "../../src/base/bytes.ts";

/** The most that a block of zstd holds (RFC 8878, 3.1.1.2.4). */
export const ZSTD_BLOCK_BYTES = 128 * 1024;

const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];
const SINGLE_SEGMENT = 1 << 5;
const CHECKSUM = 1 << 2;

export interface ZstdFrameParts {
  /** The window's descriptor; absent: the frame's size is its window. */
  readonly window?: number;
  readonly contentSize?: { readonly value: number; readonly byteLength: 0 | 1 | 2 | 4 | 8 };
  readonly dictionaryIdBytes?: 0 | 1 | 2 | 4;
  readonly hasChecksum?: boolean;
  readonly blocks: readonly number[];
}

/** A frame made by hand, whatever it asks for. */
export function zstdFrame(parts: ZstdFrameParts): Bytes {
  const { window, contentSize, dictionaryIdBytes = 0, hasChecksum = false, blocks } = parts;
  const { value = 0, byteLength = 0 } = contentSize ?? {};
  const sizeFlag = byteLength < 2 ? 0 : Math.log2(byteLength);
  const dictionaryFlag = [0, 1, 2, 4].indexOf(dictionaryIdBytes);
  const descriptor = sizeFlag << 6 | (window === undefined ? SINGLE_SEGMENT : 0) |
    (hasChecksum ? CHECKSUM : 0) | dictionaryFlag;
  return Uint8Array.from([
    ...MAGIC,
    descriptor,
    ...(window === undefined ? [] : [window]),
    ...new Array(dictionaryIdBytes).fill(1),
    ...littleEndian(byteLength === 2 ? value - 256 : value, byteLength),
    ...blocks,
    ...(hasChecksum ? [1, 2, 3, 4] : []),
  ]);
}

/** A frame that decoders leap over. */
export function skippableFrame(kind: number, byteLength: number): Bytes {
  const body = new Array(byteLength).fill(0x28);
  return Uint8Array.from([0x50 | kind, 0x2a, 0x4d, 0x18, ...littleEndian(byteLength, 4), ...body]);
}

/** So many blocks that are one zero, again and again, 128 KiB each. */
export function zstdBlocks(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => {
    const header = ZSTD_BLOCK_BYTES << 3 | 1 << 1 | Number(index === count - 1);
    return [...littleEndian(header, 3), 0];
  }).flat();
}

function littleEndian(value: number, byteLength: number): readonly number[] {
  return Array.from({ length: byteLength }, (_, at) => Math.floor(value / 256 ** at) % 256);
}
