import { crc32 } from "node:zlib";
import type { Bytes } from "../../base/bytes.ts";
import type { StoredFormat } from "./stored_format.ts";

// Sections 2 to 5 of the .xz file format 1.2.1 (tukaani.org). One block, one filter: LZMA2.

const BLOCK_BYTES = 65_536;

/** The check of the block is a CRC32. */
const STREAM_FLAGS = [0x00, 0x01];

/** 12 bytes with its CRC32; one filter, LZMA2 with one property: a dictionary of 64 KiB. */
const BLOCK_HEADER = [0x02, 0x00, 0x21, 0x01, 0x08, 0x00, 0x00, 0x00];
const BLOCK_HEADER_BYTES = BLOCK_HEADER.length + 4;

const CHECK_BYTES = 4;

/** The control bytes of LZMA2 chunks that are not compressed; the first resets the dictionary. */
const FIRST_CHUNK = 1;
const FURTHER_CHUNK = 2;
const END_OF_CHUNKS = 0;
const CHUNK_HEAD_BYTES = 3;

/** xz whose LZMA2 chunks are all stored. */
export const STORED_XZ: StoredFormat = {
  blockBytes: BLOCK_BYTES,
  blockHeadBytes: CHUNK_HEAD_BYTES,
  hasEmptyBlock: false,
  head: () =>
    Uint8Array.of(
      ...[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00],
      ...withCrc32(STREAM_FLAGS),
      ...withCrc32(BLOCK_HEADER),
    ),
  blockHead(byteLength, { isFirst }) {
    const size = byteLength - 1;
    return [isFirst ? FIRST_CHUNK : FURTHER_CHUNK, size >> 8, size & 0xff];
  },
  tail(narSize, narCrc32): Bytes {
    const chunks = Math.ceil(narSize / BLOCK_BYTES);
    const blockBytes = BLOCK_HEADER_BYTES + narSize + chunks * CHUNK_HEAD_BYTES + 1;
    const index = [0x00, 0x01, ...multibyte(blockBytes + CHECK_BYTES), ...multibyte(narSize)];
    index.push(...padding(index.length));
    const indexBytes = index.length + 4;
    const footer = [...littleEndian(indexBytes / 4 - 1), ...STREAM_FLAGS];
    return Uint8Array.of(
      END_OF_CHUNKS,
      ...padding(blockBytes),
      ...littleEndian(narCrc32),
      ...withCrc32(index),
      ...littleEndian(crc32(Uint8Array.from(footer))),
      ...footer,
      ...[0x59, 0x5a],
    );
  },
};

function withCrc32(bytes: readonly number[]): readonly number[] {
  return [...bytes, ...littleEndian(crc32(Uint8Array.from(bytes)))];
}

function padding(byteLength: number): readonly number[] {
  return new Array((4 - byteLength % 4) % 4).fill(0);
}

/** Seven bits a byte, the lowest first. Sizes are beyond 32 bits. */
function multibyte(value: number): readonly number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push(rest % 0x80 | 0x80);
  return [...bytes, rest];
}

function littleEndian(value: number): readonly number[] {
  return [value, value >>> 8, value >>> 16, value >>> 24].map((byte) => byte & 0xff);
}
