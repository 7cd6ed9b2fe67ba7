import type { Series } from "../metrics.ts";

export interface LossesDeps {
  /** Called with the first loss of an outage. */
  readonly lost: (reason: string) => void;
  readonly counter: Pick<Series, "add">;
}

/**
 * Counts the lost records of one signal, and logs each outage once. An OutageLog would log each
 * repeat at level debug: one record more for the queue that loses them.
 */
export class Losses {
  readonly #deps: LossesDeps;
  #isOut = false;

  constructor(deps: LossesDeps) {
    this.#deps = deps;
  }

  dropped(count: number, reason: string): void {
    this.#deps.counter.add(count);
    if (this.#isOut) return;
    this.#isOut = true;
    this.#deps.lost(reason);
  }

  /** Ends an outage: records arrived without a loss. */
  delivered(): void {
    this.#isOut = false;
  }
}
