/** Once another upstream has found a path, a better one is waited for no longer. */
export const PATIENCE_MAX_MS = 300;

/** The usual times for which a better upstream is waited for. */
const PATIENCE_TIMES = 2;

/** The newest answers that count. */
const ANSWERS_MAX = 20;

/** The part of the answers that come within the usual time. */
const USUAL_PART = 0.9;

/** A shorter time says more about this thread than about the upstream. */
const USUAL_MIN_MS = 25;

/** A wait for a better upstream, after another one has found the path. */
export interface RivalWait {
  readonly ms: number;
  /** True where it has not answered all the same. */
  readonly isLate: boolean;
}

/** The usual time of an upstream's answers of one kind: nine of ten of the newest are as quick. */
export class UsualTime {
  readonly #newestMs: number[] = [];

  note(ms: number): void {
    if (this.#newestMs.length >= ANSWERS_MAX) this.#newestMs.shift();
    this.#newestMs.push(ms);
  }

  /** How long it is waited for once another upstream has found the path; no answer yet: longest. */
  get patienceMs(): number {
    const sorted = this.#newestMs.toSorted((a, b) => a - b);
    const usualMs = sorted[Math.ceil(USUAL_PART * sorted.length) - 1] ?? Infinity;
    return Math.min(PATIENCE_MAX_MS, PATIENCE_TIMES * Math.max(USUAL_MIN_MS, usualMs));
  }
}
