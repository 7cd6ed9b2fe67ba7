import { setImmediate } from "node:timers";

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/**
 * Timers and `performance.now()` that only go on when a test says so, until the scope ends. Meant
 * for code that waits for nothing but timers and promises.
 */
export class PlayedTime implements Disposable {
  #nowMs = 0;
  #lastId = 0;
  readonly #timers = new Map<number, Timer>();
  readonly #real = { setTimeout, clearTimeout, now: performance.now };

  constructor() {
    globalThis.setTimeout = ((run: () => void, ms = 0) => {
      this.#timers.set(++this.#lastId, { atMs: this.#nowMs + ms, run });
      return this.#lastId;
    }) as unknown as typeof setTimeout;
    globalThis.clearTimeout = (id) => void this.#timers.delete(Number(id));
    performance.now = () => this.#nowMs;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Runs the timers that are due within `ms`, each at its time. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      await this.settled();
      const [id, timer] = [...this.#timers].toSorted(([, a], [, b]) => a.atMs - b.atMs)[0] ?? [];
      if (id === undefined || timer === undefined || timer.atMs > untilMs) break;
      this.#timers.delete(id);
      this.#nowMs = Math.max(this.#nowMs, timer.atMs);
      timer.run();
    }
    this.#nowMs = untilMs;
  }

  /** The thread is blocked: no timer runs, however late it gets. */
  standStill(ms: number): void {
    this.#nowMs += ms;
  }

  /** Resolves when promises that can go on have done so. */
  async settled(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  [Symbol.dispose](): void {
    globalThis.setTimeout = this.#real.setTimeout;
    globalThis.clearTimeout = this.#real.clearTimeout;
    performance.now = this.#real.now;
  }
}
