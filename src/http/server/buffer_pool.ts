/** Buffers of one size that are used again: the collector has nothing to do with them. */
export class BufferPool {
  readonly #byteLength: number;
  readonly #keptMax: number;
  readonly #kept: Uint8Array<ArrayBuffer>[] = [];

  constructor(byteLength: number, keptMax: number) {
    this.#byteLength = byteLength;
    this.#keptMax = keptMax;
  }

  take(): Uint8Array<ArrayBuffer> {
    return this.#kept.pop() ?? new Uint8Array(this.#byteLength);
  }

  /** Takes back a buffer that nobody reads or writes any more. */
  give(buffer: Uint8Array<ArrayBuffer>): void {
    if (this.#kept.length < this.#keptMax && buffer.length === this.#byteLength) {
      this.#kept.push(buffer);
    }
  }
}
