/**
 * Wakes everybody who waits at once. For state that lives elsewhere and changes often: look at
 * the state, and when it is not what you need, `await bell.rung()` and look again.
 */
export class Bell {
  #waiting: (() => void)[] = [];

  ring(): void {
    if (this.#waiting.length === 0) return;
    const woken = this.#waiting;
    this.#waiting = [];
    for (const wake of woken) wake();
  }

  /** Resolves at the next `ring()`, or after `limitMs` if that is given and comes first. */
  rung(limitMs?: number): Promise<void> {
    return new Promise((resolve) => {
      if (limitMs === undefined) return void this.#waiting.push(resolve);
      const timer = setTimeout(wake, limitMs);
      function wake(): void {
        clearTimeout(timer);
        resolve();
      }
      this.#waiting.push(wake);
    });
  }
}
