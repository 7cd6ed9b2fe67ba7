import type { Source } from "../../cache/serve_narinfo.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";

/**
 * The series of `cache_requests_total` of one kind, by where the answer came from; `negative` for
 * what is absent, and nobody was asked. Each request with a well-formed name counts in one.
 */
export function requestSeries(
  metrics: Metrics,
  kind: "narinfo" | "nar",
): Readonly<Record<Source | "negative", Series>> {
  return {
    negative: metrics.series("cache_requests_total", { kind, result: "negative" }),
    HIT: metrics.series("cache_requests_total", { kind, result: "hit" }),
    MISS: metrics.series("cache_requests_total", { kind, result: "miss" }),
    JOINED: metrics.series("cache_requests_total", { kind, result: "joined" }),
  };
}

/** The series of `served_bytes_total` of one kind, by where the answer came from. */
export function servedBytes(
  metrics: Metrics,
  kind: "narinfo" | "nar",
): Readonly<Record<Source, Series>> {
  return {
    HIT: metrics.series("served_bytes_total", { kind, source: "hit" }),
    MISS: metrics.series("served_bytes_total", { kind, source: "miss" }),
    JOINED: metrics.series("served_bytes_total", { kind, source: "joined" }),
  };
}
