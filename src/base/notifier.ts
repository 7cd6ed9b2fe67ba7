import { clock } from "../runtime/current.ts";

/**
 * Wakes every waiting caller at once. For state that lives elsewhere and changes often: read the
 * state, `await notifier.notified()` if it is not ready, and read it again.
 */
export class Notifier {
  #waiting: (() => void)[] = [];

  notify(): void {
    if (this.#waiting.length === 0) return;
    const woken = this.#waiting;
    this.#waiting = [];
    for (const wake of woken) wake();
  }

  /** Resolves at the next `notify()`, or after `limitMs` if that comes first. */
  notified(limitMs?: number): Promise<void> {
    return new Promise((resolve) => {
      if (limitMs === undefined) return void this.#waiting.push(resolve);
      const timer = clock.after(limitMs, wake);
      function wake(): void {
        timer.cancel();
        resolve();
      }
      this.#waiting.push(wake);
    });
  }
}
