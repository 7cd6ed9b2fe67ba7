import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import type { Bytes } from "../../src/base/bytes.ts";

const LZMA2_CHUNK_MAX = 64 * 1024;
const ZSTD_BLOCK_MAX = 128 * 1024;
const XZ_MAGIC = [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00];
// Stream flags: the check of each block is a CRC32.
const XZ_FLAGS = [0x00, 0x01];
// One LZMA2 filter with a dictionary of 64 KiB; sizes are left to the index.
const XZ_BLOCK_HEADER = [0x02, 0x00, 0x21, 0x01, 0x08, 0x00, 0x00, 0x00];

/**
 * A valid .xz of bytes that are only stored, in one block: no program needed, and a
 * fraction of a second for 300 MB.
 */
export function storedXz(bytes: Uint8Array): Bytes {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += LZMA2_CHUNK_MAX) {
    const piece = bytes.subarray(at, at + LZMA2_CHUNK_MAX);
    const last = piece.length - 1;
    // 1 resets the dictionary, which the first chunk has to do.
    chunks.push(Uint8Array.of(at === 0 ? 1 : 2, last >> 8, last & 255), piece);
  }
  chunks.push(Uint8Array.of(0));
  const header = withCrc(XZ_BLOCK_HEADER);
  const unpadded = header.length + lengthOf(chunks) + 4;
  const padding = new Uint8Array((4 - unpadded % 4) % 4);
  const index = xzIndex(unpadded, bytes.length);
  const footer = [...littleEndian(index.length / 4 - 1), ...XZ_FLAGS];
  return concat([
    Uint8Array.from(XZ_MAGIC),
    withCrc(XZ_FLAGS),
    header,
    ...chunks,
    padding,
    littleEndian(crc32(bytes)),
    index,
    littleEndian(crc32(Uint8Array.from(footer))),
    Uint8Array.from(footer),
    Uint8Array.of(0x59, 0x5a),
  ]);
}

/** One valid zstd frame of bytes that are only stored, without a checksum. */
export function storedZstd(bytes: Uint8Array): Bytes {
  // Magic, a descriptor without size or checksum, a window of 128 KiB.
  const chunks: Uint8Array[] = [Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38)];
  let at = 0;
  do {
    const piece = bytes.subarray(at, at + ZSTD_BLOCK_MAX);
    at += ZSTD_BLOCK_MAX;
    const isLast = at >= bytes.length ? 1 : 0;
    chunks.push(littleEndian((piece.length << 3) | isLast).subarray(0, 3), piece);
  } while (at < bytes.length);
  return concat(chunks);
}

function xzIndex(unpaddedBytes: number, plainBytes: number): Uint8Array {
  const records = [0, 1, ...varint(unpaddedBytes), ...varint(plainBytes)];
  while (records.length % 4 !== 0) records.push(0);
  return withCrc(records);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push(rest % 128 + 128);
  return [...bytes, rest];
}

function withCrc(bytes: readonly number[]): Uint8Array {
  return Uint8Array.from([...bytes, ...littleEndian(crc32(Uint8Array.from(bytes)))]);
}

function littleEndian(word: number): Uint8Array {
  return Uint8Array.of(word & 255, (word >>> 8) & 255, (word >>> 16) & 255, word >>> 24);
}

function lengthOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((length, chunk) => length + chunk.length, 0);
}

function concat(chunks: readonly Uint8Array[]): Bytes {
  return new Uint8Array(Buffer.concat(chunks));
}
