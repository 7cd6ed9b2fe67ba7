import type { FetchProgress } from "./nar_fetcher.ts";

/** At most one message in this time: readers wait no longer, and messages cost. */
const TELL_EVERY_MS = 2;

/** Tells how far a file has grown: at once after a pause, else in steps of time. */
export class ProgressTeller {
  readonly #tell: (progress: FetchProgress) => void;
  #toldAt = -Infinity;
  #received = 0;
  #told = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(tell: (progress: FetchProgress) => void) {
    this.#tell = tell;
  }

  grown(received: number): void {
    this.#received = received;
    if (this.#timer !== undefined) return;
    const waitMs = this.#toldAt + TELL_EVERY_MS - performance.now();
    if (waitMs <= 0) this.flush();
    else this.#timer = setTimeout(() => this.flush(), waitMs);
  }

  /** Says at once what was not said yet. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // A timer that is due in this very turn fires though it was cleared (Deno 2.6.8).
    if (this.#received === this.#told) return;
    this.#toldAt = performance.now();
    this.#told = this.#received;
    this.#tell({ type: "bytes", received: this.#received });
  }
}
