import type { StoredFormat } from "./stored_format.ts";

// RFC 7932, section 9. Fields begin at the lowest bit.

/** An empty last meta-block. */
const END = 0b11;

/**
 * brotli whose meta-blocks are all uncompressed. A bit 0 before the first says that the window has
 * 64 KiB. Each has: not the last (1 bit), four nibbles of size (2), its size less one (16),
 * uncompressed (1).
 */
export const STORED_BROTLI: StoredFormat = {
  blockBytes: 65_536,
  blockHeadBytes: 3,
  hasEmptyBlock: false,
  head: () => new Uint8Array(0),
  blockHead(byteLength, { isFirst }) {
    const block = byteLength - 1 << 3 | 1 << 19;
    const bits = isFirst ? block << 1 : block;
    return [bits & 0xff, bits >> 8 & 0xff, bits >> 16 & 0xff];
  },
  tail: (narSize) => Uint8Array.of(narSize === 0 ? END << 1 : END),
};
