import type { CacheResult, NarFacts } from "../../cache/nar/nar_answer.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";

/** The result that a request counts as: the first for a prefetched file is no plain hit. */
export type CountedResult = CacheResult | "prefetched";

export function countedAs(
  { cacheResult, isFirstOfPrefetch }: Pick<NarFacts, "cacheResult" | "isFirstOfPrefetch">,
): CountedResult {
  return isFirstOfPrefetch ? "prefetched" : cacheResult;
}

/**
 * The series of `cache_requests_total` for one kind, by source; `negative` is an absence from
 * memory. Each request with a well-formed name counts in one.
 */
export function requestSeries(
  metrics: Metrics,
  kind: "narinfo" | "nar",
): Readonly<Record<CountedResult | "negative", Series>> {
  return {
    negative: metrics.series("cache_requests_total", { kind, result: "negative" }),
    HIT: metrics.series("cache_requests_total", { kind, result: "hit" }),
    MISS: metrics.series("cache_requests_total", { kind, result: "miss" }),
    JOINED: metrics.series("cache_requests_total", { kind, result: "joined" }),
    prefetched: metrics.series("cache_requests_total", { kind, result: "prefetched" }),
  };
}

/** The series of `served_bytes_total` for one kind, by source. */
export function servedBytes(
  metrics: Metrics,
  kind: "narinfo" | "nar",
): Readonly<Record<CountedResult, Series>> {
  return {
    HIT: metrics.series("served_bytes_total", { kind, source: "hit" }),
    MISS: metrics.series("served_bytes_total", { kind, source: "miss" }),
    JOINED: metrics.series("served_bytes_total", { kind, source: "joined" }),
    prefetched: metrics.series("served_bytes_total", { kind, source: "prefetched" }),
  };
}
