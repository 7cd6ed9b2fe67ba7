/** The most seconds of a whole bench. */
const WHOLE_MAX_S = 600;

/** Parts that a missed limit names. */
const LONGEST_COUNT = 5;

/** The time that a bench takes, and that of its parts. */
export class Durations {
  readonly #nowMs: () => number;
  readonly #startedAtMs: number;
  readonly #parts = new Map<string, number>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#startedAtMs = nowMs();
  }

  /** Runs a part, and prints its name and duration, as a bench takes minutes. */
  async part<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
    const startedAtMs = this.#nowMs();
    try {
      return await work();
    } finally {
      const tookS = (this.#nowMs() - startedAtMs) / 1_000;
      this.#parts.set(name, (this.#parts.get(name) ?? 0) + tookS);
      console.error(`${name} (${tookS.toFixed(0)} s)`);
    }
  }

  /** A line with the time so far. A whole bench that takes too long names its longest parts. */
  line({ isWhole }: { readonly isWhole: boolean }): string {
    const tookS = (this.#nowMs() - this.#startedAtMs) / 1_000;
    const took = `The bench took ${tookS.toFixed(0)} s`;
    if (!isWhole) return `${took}.`;
    const verdict = tookS <= WHOLE_MAX_S ? "reached" : `MISSED; the longest: ${this.#longest()}`;
    return `${took} (≤ ${WHOLE_MAX_S}: ${verdict}).`;
  }

  #longest(): string {
    return [...this.#parts].toSorted(([, one], [, two]) => two - one).slice(0, LONGEST_COUNT)
      .map(([name, tookS]) => `${name} ${tookS.toFixed(0)} s`).join("; ");
  }
}
