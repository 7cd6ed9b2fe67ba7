import type { LRUCache } from "lru-cache";
import { lruOf } from "../../base/lru.ts";
import type { StorePathHash } from "../../nix/store_path.ts";

/** A bulk query of a large system asks for some ten thousand paths. */
const ENTRIES_MAX = 50_000;

/** Store paths or documents that no upstream has, remembered for a short time. */
export class NegativeCache<Name extends string = StorePathHash> {
  readonly #entries: LRUCache<Name, true> | undefined;
  #clearings = 0;

  /** A cache of `ttlMs`; with 0 it remembers nothing. */
  constructor(ttlMs: number) {
    this.#entries = ttlMs > 0 ? lruOf({ countMax: ENTRIES_MAX, ttlMs }) : undefined;
  }

  has(name: Name): boolean {
    return this.#entries?.get(name) ?? false;
  }

  /** The count of clearings: read it before the request, for `add`. */
  get clearings(): number {
    return this.#clearings;
  }

  /**
   * Call it only when every upstream answered that it does not have `name`. Ignored when
   * `clearings` has changed since the request began.
   */
  add(name: Name, clearings: number): void {
    if (clearings === this.#clearings) this.#entries?.set(name, true);
  }

  /** Call it when an upstream is up again: it may have any of the entries. */
  clear(): void {
    this.#clearings++;
    this.#entries?.clear();
  }

  /** Call it when `name` is here: a request that began before may not report it absent. */
  remove(name: Name): void {
    this.#clearings++;
    this.#entries?.delete(name);
  }
}
