/** A prefetched entry without a request within this time is wasted. */
const WASTED_AFTER_MS = 10 * 60_000;

/** Prefetched names in memory, and as many wasted ones. */
const NAMES_MAX = 20_000;

export type AheadEnd = "used" | "wasted";

export interface AheadLedgerDeps {
  readonly nowMs: () => number;
  /** Called once for each name. */
  readonly judged: (end: AheadEnd) => void;
}

/** The prefetched entries that no client has requested. */
export class AheadLedger<Name extends string> {
  readonly #deps: AheadLedgerDeps;
  /** The time of each fetch, in that order. */
  readonly #waiting = new Map<Name, number>();
  /** Wasted entries, whose first request is still a hit of its own kind. */
  readonly #wasted = new Set<Name>();

  constructor(deps: AheadLedgerDeps) {
    this.#deps = deps;
  }

  add(name: Name): void {
    this.#wasted.delete(name);
    this.#waiting.delete(name);
    this.#waiting.set(name, this.#deps.nowMs());
    const [oldest] = this.#waiting.keys();
    if (this.#waiting.size > NAMES_MAX && oldest !== undefined) this.#waste(oldest);
  }

  /** True for the first request of a prefetched entry. */
  asked(name: Name): boolean {
    const atMs = this.#waiting.get(name);
    if (atMs === undefined) return this.#wasted.size > 0 && this.#wasted.delete(name);
    const isLate = this.#deps.nowMs() - atMs > WASTED_AFTER_MS;
    this.#waiting.delete(name);
    this.#deps.judged(isLate ? "wasted" : "used");
    return true;
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
    this.#wasted.add(name);
    const [oldest] = this.#wasted;
    if (this.#wasted.size > NAMES_MAX && oldest !== undefined) this.#wasted.delete(oldest);
    this.#deps.judged("wasted");
  }
}
