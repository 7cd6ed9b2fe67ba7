/** Size of the write that waits for a client that does not read. */
export const SMALL_WRITE_BYTES = 16 * 1024;

/** Memory for larger writes. */
const LARGE_BYTES_MAX = 32 * 1024 * 1024;

/**
 * Counts the memory that the runtime holds for running writes, also those of closed connections. On
 * Deno 2.6 a write outlives its connection until the client leaves. Counts also the bytes that wait
 * behind small writes.
 */
export class RunningWrites {
  readonly #largeBytesMax: number;
  #largeBytes = 0;
  #waitingBytes = 0;

  constructor(largeBytesMax = LARGE_BYTES_MAX) {
    this.#largeBytesMax = largeBytesMax;
  }

  /** True while there is no memory for another large write. */
  get areLarge(): boolean {
    return this.#largeBytes >= this.#largeBytesMax;
  }

  /** True while clients hold so much that no answer must add a large copy of its own. */
  get holdMuch(): boolean {
    return this.#largeBytes + this.#waitingBytes >= this.#largeBytesMax;
  }

  begin(bytes: Uint8Array): void {
    if (isLarge(bytes)) this.#largeBytes += bytes.buffer.byteLength;
  }

  end(bytes: Uint8Array): void {
    if (isLarge(bytes)) this.#largeBytes -= bytes.buffer.byteLength;
  }

  beginWaiting({ buffer }: Uint8Array): void {
    this.#waitingBytes += buffer.byteLength;
  }

  endWaiting({ buffer }: Uint8Array): void {
    this.#waitingBytes -= buffer.byteLength;
  }
}

/** True if a write of these bytes holds more than a small one. */
export function isLarge({ buffer }: Uint8Array): boolean {
  return buffer.byteLength > SMALL_WRITE_BYTES;
}
