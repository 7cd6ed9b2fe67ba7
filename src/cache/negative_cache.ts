import { LRUCache } from "lru-cache";
import type { StorePathHash } from "../nix/store_path.ts";

/** A bulk query of a large system asks for some ten thousand paths. */
const ENTRIES_MAX = 50_000;

/** What no upstream has, for a short while: store paths, or documents. */
export class NegativeCache<Name extends string = StorePathHash> {
  readonly #entries: LRUCache<Name, true> | undefined;
  #clearings = 0;

  /** `ttlMs` 0 remembers nothing. */
  constructor(ttlMs: number) {
    // Without a resolution it looks at the clock each time, and needs no timer of its own.
    this.#entries = ttlMs > 0
      ? new LRUCache({ max: ENTRIES_MAX, ttl: ttlMs, ttlResolution: 0 })
      : undefined;
  }

  has(name: Name): boolean {
    return this.#entries?.get(name) ?? false;
  }

  /** How often it was cleared: take it before asking, for `add`. */
  get clearings(): number {
    return this.#clearings;
  }

  /**
   * Only for what every upstream said it does not have. Not for what was asked before the last
   * clearing, when `clearings` was another.
   */
  add(name: Name, clearings: number): void {
    if (clearings === this.#clearings) this.#entries?.set(name, true);
  }

  /** An upstream that was not asked is back: it may have any of them. */
  clear(): void {
    this.#clearings++;
    this.#entries?.clear();
  }

  remove(name: Name): void {
    this.#entries?.delete(name);
  }
}
