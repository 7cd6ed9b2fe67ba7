/** A prefetched entry without a request within this time is wasted. */
const WASTED_AFTER_MS = 10 * 60_000;

/** Prefetched names in memory, and as many judged ones. */
const NAMES_MAX = 20_000;

export type PrefetchEnd = "used" | "wasted";

export interface PrefetchOutcomesDeps {
  readonly nowMs: () => number;
  /** Called once for each name. */
  readonly judged: (end: PrefetchEnd) => void;
}

/** The prefetched entries that no client has requested. */
export class PrefetchOutcomes<Name extends string> {
  readonly #deps: PrefetchOutcomesDeps;
  /** The time of each fetch, in that order. */
  readonly #waiting = new Map<Name, number>();
  /** Judged entries, whose first GET is still a hit of its own kind. */
  readonly #judged = new Set<Name>();

  constructor(deps: PrefetchOutcomesDeps) {
    this.#deps = deps;
  }

  add(name: Name): void {
    this.#judged.delete(name);
    this.#waiting.delete(name);
    this.#waiting.set(name, this.#deps.nowMs());
    const [oldest] = this.#waiting.keys();
    if (this.#waiting.size > NAMES_MAX && oldest !== undefined) this.#waste(oldest);
  }

  /** True for a prefetched entry before its first GET. */
  has(name: Name): boolean {
    return this.#waiting.has(name) || this.#judged.has(name);
  }

  /** True for the first GET of a prefetched entry. */
  requested(name: Name): boolean {
    const atMs = this.#waiting.get(name);
    if (atMs === undefined) return this.#judged.size > 0 && this.#judged.delete(name);
    const isLate = this.#deps.nowMs() - atMs > WASTED_AFTER_MS;
    this.#waiting.delete(name);
    this.#deps.judged(isLate ? "wasted" : "used");
    return true;
  }

  /** The same for a HEAD that is a use of the entry: its first GET is still to come. */
  headRequested(name: Name): boolean {
    const isFirstOfPrefetch = this.requested(name);
    if (isFirstOfPrefetch) this.#keep(name);
    return isFirstOfPrefetch;
  }

  /** Counts entries without a request in time as wasted. */
  expire(): void {
    const sinceMs = this.#deps.nowMs() - WASTED_AFTER_MS;
    for (const [name, atMs] of this.#waiting) {
      if (atMs >= sinceMs) return;
      this.#waste(name);
    }
  }

  #waste(name: Name): void {
    this.#waiting.delete(name);
    this.#keep(name);
    this.#deps.judged("wasted");
  }

  #keep(name: Name): void {
    this.#judged.add(name);
    const [oldest] = this.#judged;
    if (this.#judged.size > NAMES_MAX && oldest !== undefined) this.#judged.delete(oldest);
  }
}
