import type { Bytes } from "../../base/bytes.ts";
import type { StoredFormat } from "./stored_format.ts";

// RFC 8878. The window is as large as a block: a decoder needs no more memory for it.

const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];
const BLOCK_BYTES = 131_072;

/** 2 ** (10 + 7) bytes. */
const WINDOW_DESCRIPTOR = 7 << 3;

/** The content size follows in eight bytes; no checksum, no dictionary. */
const SIZED_DESCRIPTOR = 0b1100_0000;
const UNSIZED_DESCRIPTOR = 0;

/** zstd whose blocks are all raw. */
export const RAW_ZSTD: StoredFormat = {
  blockBytes: BLOCK_BYTES,
  blockHeadBytes: 3,
  hasEmptyBlock: true,
  head(narSize) {
    const size = new Uint8Array(8);
    new DataView(size.buffer).setBigUint64(0, BigInt(narSize), true);
    return Uint8Array.of(...MAGIC, SIZED_DESCRIPTOR, WINDOW_DESCRIPTOR, ...size);
  },
  blockHead: (byteLength, { isLast }) => rawBlockHead(byteLength, isLast),
  tail: () => new Uint8Array(0),
};

function rawBlockHead(byteLength: number, isLast: boolean): readonly number[] {
  const head = byteLength << 3 | (isLast ? 1 : 0);
  return [head & 0xff, head >> 8 & 0xff, head >> 16];
}

/**
 * Speaks a NAR of unknown size as zstd. A block waits for the next one or for the end: so nobody
 * takes what came of a broken NAR for the whole.
 */
export class UnsizedZstdSpeaker {
  readonly #held = new Uint8Array(BLOCK_BYTES);
  #heldBytes = 0;

  begin(): Bytes {
    return Uint8Array.of(...MAGIC, UNSIZED_DESCRIPTOR, WINDOW_DESCRIPTOR);
  }

  speak(piece: Uint8Array): readonly Bytes[] {
    const blocks = Math.max(0, Math.ceil((this.#heldBytes + piece.length) / BLOCK_BYTES) - 1);
    const out = new Outcome(blocks * (BLOCK_BYTES + 3));
    for (let at = 0; at < piece.length;) {
      if (this.#heldBytes === BLOCK_BYTES) this.#writeBlock(out, false);
      const part = piece.subarray(at, at + BLOCK_BYTES - this.#heldBytes);
      this.#held.set(part, this.#heldBytes);
      this.#heldBytes += part.length;
      at += part.length;
    }
    return [out.bytes];
  }

  end(): Bytes {
    const out = new Outcome(3 + this.#heldBytes);
    this.#writeBlock(out, true);
    return out.bytes;
  }

  #writeBlock(out: Outcome, isLast: boolean): void {
    out.add(rawBlockHead(this.#heldBytes, isLast));
    out.add(this.#held.subarray(0, this.#heldBytes));
    this.#heldBytes = 0;
  }
}

class Outcome {
  readonly bytes: Bytes;
  #size = 0;

  constructor(byteLength: number) {
    this.bytes = new Uint8Array(byteLength);
  }

  add(part: ArrayLike<number>): void {
    this.bytes.set(part, this.#size);
    this.#size += part.length;
  }
}
