import type { StoredFormat } from "./stored_format.ts";

// RFC 1951 and 1952. A file without a name, a time and an operating system.

const HEAD = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/** gzip whose blocks of deflate are all stored. */
export const STORED_GZIP: StoredFormat = {
  blockBytes: 65_535,
  blockHeadBytes: 5,
  hasEmptyBlock: true,
  head: () => Uint8Array.from(HEAD),
  blockHead(byteLength, { isLast }) {
    const [low, high] = [byteLength & 0xff, byteLength >> 8];
    return [isLast ? 1 : 0, low, high, low ^ 0xff, high ^ 0xff];
  },
  tail(narSize, narCrc32) {
    const tail = new DataView(new ArrayBuffer(8));
    tail.setUint32(0, narCrc32, true);
    // Modulo 2 ** 32, as the format wants it.
    tail.setUint32(4, narSize % 2 ** 32, true);
    return new Uint8Array(tail.buffer);
  },
};
