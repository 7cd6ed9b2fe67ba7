import { LRUCache } from "lru-cache";
import { clock } from "../runtime/current.ts";

export interface LruOptions {
  readonly countMax: number;
  /** How long an entry is valid. Default: until it is dropped. */
  readonly ttlMs?: number;
}

/**
 * A cache of at most `countMax` entries, which drops the least recently used one. Its memory grows
 * with its entries: with `max`, LRUCache allocates for all of them when it is made.
 */
export function lruOf<Key extends string, Value extends NonNullable<unknown>>(
  { countMax, ttlMs }: LruOptions,
): LRUCache<Key, Value> {
  // Without a resolution the cache reads the clock each time, and needs no timer.
  const perf = { now: () => clock.nowMs() };
  const ttl = ttlMs === undefined ? {} : { ttl: ttlMs, ttlResolution: 0, perf };
  return new LRUCache({ maxSize: countMax, sizeCalculation: () => 1, ...ttl });
}
