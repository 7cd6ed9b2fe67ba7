import type { Bytes } from "./bytes.ts";

/** Size of the first block. Each further one doubles the memory held, up to the largest size. */
const BLOCK_BYTES_MIN = 4 * 1024;
const BLOCK_BYTES_MAX = 256 * 1024;

/**
 * Bytes collected in blocks of their own. It copies each piece: one byte of it must not keep the
 * larger buffer alive in which it arrived.
 */
export class ByteBlocks {
  /** All but the last are full. */
  #blocks: Bytes[] = [];
  #byteLength = 0;
  #heldBytes = 0;

  /** Bytes collected. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** Memory of all blocks, for memory limits. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Memory that `byteLength` more bytes take beyond `heldBytes`. */
  growthFor(byteLength: number): number {
    const missing = byteLength - this.#freeBytes;
    let growth = 0;
    while (growth < missing) growth += blockBytes(this.#heldBytes + growth);
    return growth;
  }

  /** Appends a copy of `bytes`. */
  add(bytes: Uint8Array): void {
    for (let rest = bytes; rest.length > 0;) {
      const free = this.#freeBytes;
      if (free === 0) {
        this.#append();
        continue;
      }
      const block = this.#blocks.at(-1);
      const part = rest.subarray(0, free);
      block?.set(part, block.length - free);
      this.#byteLength += part.length;
      rest = rest.subarray(part.length);
    }
  }

  /** The first bytes, at most those of the first block. The next call of `add` may change them. */
  get beginning(): Bytes {
    return this.#blocks[0]?.subarray(0, this.#byteLength) ?? new Uint8Array(0);
  }

  /** A copy of all bytes in one piece. */
  joined(): Bytes {
    const all = new Uint8Array(this.#byteLength);
    let at = 0;
    for (const block of this.#blocks) {
      const end = Math.min(at + block.length, all.length);
      all.set(block.subarray(0, end - at), at);
      at = end;
    }
    return all;
  }

  /** All bytes, block by block, once. It frees each block when the reader takes the next one. */
  *drained(): Generator<Bytes> {
    for (let block = this.#blocks.shift(); block !== undefined; block = this.#blocks.shift()) {
      const bytes = block.subarray(0, this.#byteLength);
      this.#byteLength -= bytes.length;
      this.#heldBytes -= block.length;
      yield bytes;
    }
  }

  get #freeBytes(): number {
    return this.#heldBytes - this.#byteLength;
  }

  #append(): void {
    const block = new Uint8Array(blockBytes(this.#heldBytes));
    this.#heldBytes += block.length;
    this.#blocks.push(block);
  }
}

function blockBytes(heldBytes: number): number {
  return Math.min(Math.max(heldBytes, BLOCK_BYTES_MIN), BLOCK_BYTES_MAX);
}
