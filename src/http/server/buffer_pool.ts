/** Buffers of one size that are used again: the collector has nothing to do with them. */
export class BufferPool {
  readonly #byteLength: number;
  readonly #keptMax: number;
  readonly #kept: Uint8Array<ArrayBuffer>[] = [];
  #lentCount = 0;

  constructor(byteLength: number, keptMax: number) {
    this.#byteLength = byteLength;
    this.#keptMax = keptMax;
  }

  take(): Uint8Array<ArrayBuffer> {
    this.#lentCount++;
    return this.#kept.pop() ?? new Uint8Array(this.#byteLength);
  }

  /** As `take`; `undefined` when as many are lent as are kept at most. */
  takeKept(): Uint8Array<ArrayBuffer> | undefined {
    return this.#lentCount < this.#keptMax ? this.take() : undefined;
  }

  /** Takes back a buffer that nobody reads or writes any more. */
  give(buffer: Uint8Array<ArrayBuffer>): void {
    this.#lentCount--;
    if (this.#kept.length < this.#keptMax) this.#kept.push(buffer);
  }

  /** A buffer that was taken does not come back: somebody may still write into it. */
  lose(): void {
    this.#lentCount--;
  }
}
