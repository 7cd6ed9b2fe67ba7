import type { StorePathHash } from "../nix/store_path.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { NarinfoReading, NarinfoSource } from "./upstream.ts";

/** Times the narinfo requests to an upstream, by their results. `took` gets the answered ones. */
export function meteredNarinfoSource(
  inner: NarinfoSource,
  metrics: Metrics,
  took: (upstream: string, ms: number) => void = () => undefined,
): NarinfoSource {
  const { url: upstream, priority } = inner;
  return {
    url: upstream,
    priority,
    describe: (signal) => inner.describe(signal),
    reach: (signal) => inner.reach(signal),
    async narinfo(storePathHash: StorePathHash, signal?: AbortSignal): Promise<NarinfoReading> {
      const startedAtMs = performance.now();
      const reading = await inner.narinfo(storePathHash, signal);
      const result = signal?.aborted ? "cancelled" : resultOf(reading);
      const ms = performance.now() - startedAtMs;
      metrics.histogram("upstream_request_duration_seconds", { upstream, result })
        .observe(ms / 1_000);
      if (result === "found" || result === "absent") took(upstream, ms);
      return reading;
    },
  };
}

function resultOf(reading: NarinfoReading) {
  return reading.kind === "failed" ? reading.reason : reading.kind;
}
