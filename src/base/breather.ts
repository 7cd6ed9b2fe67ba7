/**
 * How long work may hold the thread before requests get their turn. An answer needs a few turns
 * of the event loop, so that a hit beside the work waits for a few of these.
 */
const SLICE_MS = 2;

/**
 * For long work on the thread that answers: `if (breather.due) await breather.breathe()`, which
 * throws once the signal says that the work is not wanted any more.
 */
export class Breather {
  readonly #signal: AbortSignal | undefined;
  #sinceMs = performance.now();

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  /** True when the work has held the thread for its slice of time. */
  get due(): boolean {
    return performance.now() - this.#sinceMs >= SLICE_MS;
  }

  /** Resolves when whatever else was ready has run. */
  async breathe(): Promise<void> {
    await new Promise<void>((resolve) => void setTimeout(resolve, 0));
    this.#signal?.throwIfAborted();
    this.#sinceMs = performance.now();
  }
}
