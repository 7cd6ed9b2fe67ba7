interface Wait {
  readonly dueAtMs: number;
  readonly late: () => void;
}

/**
 * Many waits of one length on one timer. Nearly all of them end before they are due, and a timer of
 * its own for each costs more than the rest of a wait.
 */
export class SharedTimer {
  readonly #delayMs: number;
  /** Waits in the order of their times, since all have one length. */
  readonly #waits = new Set<Wait>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  /** Calls `late` after the delay, unless the result is disposed of before. It must not throw. */
  start(late: () => void): Disposable {
    const wait = { dueAtMs: performance.now() + this.#delayMs, late };
    this.#waits.add(wait);
    if (this.#timer === undefined) this.#arm(this.#delayMs);
    return { [Symbol.dispose]: () => this.#end(wait) };
  }

  #end(wait: Wait): void {
    if (!this.#waits.delete(wait) || this.#waits.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(delayMs: number): void {
    const timer = setTimeout(() => {
      // A timer that is due in the turn in which it is cleared fires all the same (Deno 2.6.8).
      if (timer === this.#timer) this.#fire();
    }, delayMs);
    this.#timer = timer;
  }

  #fire(): void {
    this.#timer = undefined;
    const nowMs = performance.now();
    for (const wait of this.#waits) {
      if (wait.dueAtMs > nowMs) {
        if (this.#timer === undefined) this.#arm(wait.dueAtMs - nowMs);
        return;
      }
      this.#waits.delete(wait);
      wait.late();
    }
  }
}
