import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import {
  type NarinfoReading,
  type NarinfoSource,
  type RequestRank,
  SLOW_ANSWER_MS,
} from "./upstream.ts";

/** Gets the facts that upstreams' status shows beside their narinfos. */
export interface SourceWatch {
  /** Called with the time that an answer took. */
  took(upstream: string, ms: number): void;
  /** Called with the error of a probe, or of a request for the priority. */
  undescribed(upstream: string, error: unknown): void;
}

/** Times the narinfo requests to an upstream, by their results. */
export function meteredNarinfoSource(
  inner: NarinfoSource,
  metrics: Metrics,
  watch: SourceWatch,
): NarinfoSource {
  const { url: upstream, priority } = inner;
  return {
    url: upstream,
    priority,
    describe: (signal) =>
      inner.describe(signal).catch((error) => {
        if (!signal?.aborted) watch.undescribed(upstream, error);
        throw error;
      }),
    reach: (signal) => inner.reach(signal),
    async narinfo(
      storePathHash: StorePathHash,
      signal?: AbortSignal,
      rank?: RequestRank,
    ): Promise<NarinfoReading> {
      const startedAtMs = clock.nowMs();
      const reading = await inner.narinfo(storePathHash, signal, rank);
      const result = signal?.aborted ? "cancelled" : resultOf(reading);
      const ms = clock.nowMs() - startedAtMs;
      metrics.histogram("upstream_request_duration_seconds", { upstream, result })
        .observe(ms / 1_000);
      if (reading.kind === "failed" || signal?.aborted) return reading;
      watch.took(upstream, ms);
      return ms < SLOW_ANSWER_MS ? reading : { ...reading, tookMs: Math.round(ms) };
    },
  };
}

function resultOf(reading: NarinfoReading) {
  return reading.kind === "failed" ? reading.reason : reading.kind;
}
