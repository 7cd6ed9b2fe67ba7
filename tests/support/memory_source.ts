import type { Bytes } from "../../src/base/bytes.ts";
import type { ByteSource } from "../../src/base/direct_stream.ts";

/** A source of bytes in memory. It never waits. */
export function memorySource(bytes: Bytes): ByteSource {
  let at = 0;
  let isClosed = false;
  return {
    async read(lend): Promise<number> {
      if (isClosed || at === bytes.length) return 0;
      const into = lend(bytes.length - at);
      const piece = bytes.subarray(at, at + into.length);
      into.set(piece);
      at += piece.length;
      return piece.length;
    },
    rewind: (byteLength) => void (at -= byteLength),
    close: () => void (isClosed = true),
  };
}
