import type { NarSource } from "../../metadata/metadata_store.ts";
import { clock, dice } from "../../runtime/current.ts";
import type { NarCandidates } from "./nar_candidates.ts";
import type { FailedTry, SourceFailures } from "./source_failures.ts";

/** The sources of one NAR file in order, round after round. */
export class SourceRounds {
  readonly #candidates: () => NarCandidates;
  readonly #failures: SourceFailures;
  #round: NarCandidates | undefined;
  #again: NarSource[] = [];

  /** `candidates` returns those of one round. */
  constructor(candidates: () => NarCandidates, failures: SourceFailures) {
    this.#candidates = candidates;
    this.#failures = failures;
  }

  /** The next source of this round that may be requested; `undefined` at the round's end. */
  async next(): Promise<NarSource | undefined> {
    for (let source = this.#again.shift(); source !== undefined; source = this.#again.shift()) {
      if (this.#failures.mayAsk(source.upstream)) return source;
    }
    this.#round ??= this.#candidates();
    for (;;) {
      const { value, done } = await this.#round.next();
      if (done) return undefined;
      if (this.#failures.mayAsk(value.upstream)) return value;
    }
  }

  /** Begins another round, after a pause. False after giving up, or when `signal` fired. */
  async another(signal?: AbortSignal): Promise<boolean> {
    const pauseMs = this.#failures.pauseMs(clock.nowMs());
    if (pauseMs === undefined) return false;
    await clock.pause(pauseMs * (1 - dice.fraction() / 4), signal);
    this.#round = undefined;
    return signal?.aborted !== true;
  }

  /** Another source was quicker: this one is the next to ask. */
  putBack(source: NarSource): void {
    this.#again.unshift(source);
  }

  /** The bytes are wrong, and no client has received any. Begins a first round without `wrong`. */
  startOver(wrong: string): void {
    this.#failures.startOver(wrong);
    this.#round = undefined;
    this.#again = [];
  }

  /** Asks these sources again, which counted as those of a wrong file. */
  askAgain(sources: readonly NarSource[]): void {
    for (const { upstream } of sources) this.#failures.forgive(upstream);
    this.#again.push(...sources);
  }

  /** Notes an attempt at `source` that did not bring the rest of the file. */
  failed(source: NarSource, tried: Omit<FailedTry, "atMs">): void {
    const { upstream } = source;
    const mayGoOn = this.#failures.failed(upstream, { ...tried, atMs: clock.nowMs() });
    if (mayGoOn) this.#again.unshift(source);
  }
}
