import type { Bytes } from "../../base/bytes.ts";

/** The bits of a bzip2 file in the library's order: the highest bit of a byte first. */
export class BitReader {
  readonly #next: () => Bytes;
  #chunk = new Uint8Array(0);
  #at = 0;
  #bytesBefore = 0;
  /** Bits that were read from the file but not used; fewer than eight. */
  #bits = 0;
  #bitCount = 0;
  /** The last 24 bits, which the library hides: a block's origin has 24 bits, its checksum 32. */
  last24 = 0;
  last32 = 0;

  /** `next` returns further bytes, or throws. */
  constructor(next: () => Bytes) {
    this.#next = next;
  }

  /** Bytes with at least one used bit. */
  get bytesRead(): number {
    return this.#bytesBefore + this.#at;
  }

  /** `null` skips the rest of a byte. */
  readonly read = (count: number | null): number => {
    if (count === null) return this.#bitCount = 0;
    if (count === 24) return this.last24 = this.#take(24);
    if (count === 32) return this.last32 = this.#take(16) << 16 | this.#take(16);
    return this.#take(count);
  };

  /** Takes `count` bits, at most 24. */
  #take(count: number): number {
    while (this.#bitCount < count) {
      if (this.#at === this.#chunk.length) this.#nextChunk();
      this.#bits = this.#bits << 8 | (this.#chunk[this.#at++] ?? 0);
      this.#bitCount += 8;
    }
    this.#bitCount -= count;
    return this.#bits >>> this.#bitCount & (1 << count) - 1;
  }

  #nextChunk(): void {
    this.#bytesBefore += this.#at;
    this.#at = 0;
    this.#chunk = new Uint8Array(0);
    this.#chunk = this.#next();
  }
}
