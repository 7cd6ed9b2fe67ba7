import type { Bytes } from "../base/bytes.ts";

/** The buffer of a quiet moment; one that has grown beyond it is not used again. */
const BYTES_MIN = 64 * 1024;

const ENCODER = new TextEncoder();

/**
 * Texts, encoded one behind the other. A log line that waits as a string has many parts in the
 * engine's heap, which each collection copies. That is a fifth of a small NAR hit's CPU time.
 */
export class TextBuffer {
  #buffer = new Uint8Array(BYTES_MIN);
  #byteLength = 0;

  get byteLength(): number {
    return this.#byteLength;
  }

  append(text: string): void {
    // A character has at most three bytes.
    const needed = this.#byteLength + 3 * text.length;
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#byteLength += ENCODER.encodeInto(text, this.#buffer.subarray(this.#byteLength)).written;
  }

  /** All bytes, valid until the next `append` or `clear`. */
  bytes(): Bytes {
    return this.#buffer.subarray(0, this.#byteLength);
  }

  clear(): void {
    this.#byteLength = 0;
    if (this.#buffer.length > BYTES_MIN) this.#buffer = new Uint8Array(BYTES_MIN);
  }

  #grow(needed: number): void {
    const grown = new Uint8Array(Math.max(needed, 2 * this.#buffer.length));
    grown.set(this.bytes());
    this.#buffer = grown;
  }
}
