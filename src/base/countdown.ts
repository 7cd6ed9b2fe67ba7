/** The parts of a countdown: a standstill ends one of them at most. */
const PARTS = 8;

/**
 * Calls `due` after `ms`, unless it is disposed of before. A standstill of this thread counts as
 * one part of the time at most. An answer may have come meanwhile that nobody has read yet.
 */
export class Countdown implements Disposable {
  readonly #partMs: number;
  readonly #due: () => void;
  #leftMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number, due: () => void) {
    this.#partMs = Math.ceil(ms / PARTS);
    this.#leftMs = ms;
    this.#due = due;
    this.#next();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #next(): void {
    const partMs = Math.min(this.#partMs, this.#leftMs);
    const timer = setTimeout(() => {
      // A timer that is due in the turn in which it is cleared fires all the same (Deno 2.6.8).
      if (timer !== this.#timer) return;
      this.#leftMs -= partMs;
      if (this.#leftMs > 0) return this.#next();
      this.#timer = undefined;
      this.#due();
    }, partMs);
    this.#timer = timer;
  }
}
