import type { FetchProgress } from "./nar_fetcher.ts";

/** The time between two messages: readers hardly notice it, and messages cost. */
const REPORT_EVERY_MS = 2;

/** Reports the size of a growing file: at once after a pause, else every 2 ms. */
export class ProgressTeller {
  readonly #report: (progress: FetchProgress) => void;
  #reportedAt = -Infinity;
  #received = 0;
  #reported = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(report: (progress: FetchProgress) => void) {
    this.#report = report;
  }

  grown(received: number): void {
    this.#received = received;
    if (this.#timer !== undefined) return;
    const waitMs = this.#reportedAt + REPORT_EVERY_MS - performance.now();
    if (waitMs <= 0) this.flush();
    else this.#timer = setTimeout(() => this.flush(), waitMs);
  }

  /** Reports the latest size at once. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // A timer that is due in the turn in which it is cleared fires all the same (Deno 2.6.8).
    if (this.#received === this.#reported) return;
    this.#reportedAt = performance.now();
    this.#reported = this.#received;
    this.#report({ type: "bytes", received: this.#received });
  }
}
