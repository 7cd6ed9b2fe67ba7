/** A pool of buffers of one size, which spares the garbage collector. */
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

  /** Like `take`; `undefined` when `keptMax` buffers are lent. */
  takeKept(): Uint8Array<ArrayBuffer> | undefined {
    return this.#lentCount < this.#keptMax ? this.take() : undefined;
  }

  /** Takes back a buffer that nobody reads or writes any more. */
  give(buffer: Uint8Array<ArrayBuffer>): void {
    this.#lentCount--;
    if (this.#kept.length < this.#keptMax) this.#kept.push(buffer);
  }

  /** Writes off a lent buffer into which another thread may still write. */
  writeOff(): void {
    this.#lentCount--;
  }
}
