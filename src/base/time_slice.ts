/**
 * The time that work may hold the thread. An answer needs a few turns of the event loop, so a
 * cache hit waits for a few slices of such work.
 */
const SLICE_MS = 2;

/**
 * A slice of time for long work on the thread that answers requests:
 * `if (slice.isOver) await slice.yield()`.
 */
export class TimeSlice {
  readonly #signal: AbortSignal | undefined;
  #startedAtMs = performance.now();

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  get isOver(): boolean {
    return performance.now() - this.#startedAtMs >= SLICE_MS;
  }

  /** Starts the next slice after all events that are due. Throws if the signal has fired. */
  async yield(): Promise<void> {
    await new Promise<void>((resolve) => void setTimeout(resolve, 0));
    this.#signal?.throwIfAborted();
    this.#startedAtMs = performance.now();
  }
}
