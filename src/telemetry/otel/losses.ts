import type { Series } from "../metrics.ts";

export interface LossesDeps {
  /** Told of the first loss of an outage. */
  readonly complain: (reason: string) => void;
  readonly counter: Pick<Series, "add">;
}

/** What is lost of one signal: all of it is counted, and each outage is said once. */
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
    this.#deps.complain(reason);
  }

  /** Records arrived, and none was lost meanwhile. */
  delivered(): void {
    this.#isOut = false;
  }
}
