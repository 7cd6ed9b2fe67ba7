import type { Bytes } from "../../base/bytes.ts";

/** A pool of buffers of one size, which spares the garbage collector. */
export class BufferPool {
  readonly #byteLength: number;
  readonly #keptMax: number;
  readonly #kept: Bytes[] = [];
  #lentCount = 0;

  constructor(byteLength: number, keptMax: number) {
    this.#byteLength = byteLength;
    this.#keptMax = keptMax;
  }

  take(): Bytes {
    this.#lentCount++;
    return this.#kept.pop() ?? new Uint8Array(this.#byteLength);
  }

  /** Like `take`; `undefined` when `keptMax` buffers are lent. */
  takeKept(): Bytes | undefined {
    return this.#lentCount < this.#keptMax ? this.take() : undefined;
  }

  /** Takes back a buffer that nobody reads or writes any more. */
  give(buffer: Bytes): void {
    this.#lentCount--;
    if (this.#kept.length < this.#keptMax) this.#kept.push(buffer);
  }

  /** Writes off a lent buffer into which another thread may still write. */
  writeOff(): void {
    this.#lentCount--;
  }
}
