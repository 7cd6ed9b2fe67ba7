import type { StorePathHash } from "../nix/store_path.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { NarinfoReading, NarinfoSource } from "./upstream.ts";

/** Times the narinfo requests to an upstream, by their results. */
export function meteredNarinfoSource(inner: NarinfoSource, metrics: Metrics): NarinfoSource {
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
      metrics.histogram("upstream_request_duration_seconds", { upstream, result })
        .observe((performance.now() - startedAtMs) / 1_000);
      return reading;
    },
  };
}

function resultOf(reading: NarinfoReading) {
  return reading.kind === "failed" ? reading.reason : reading.kind;
}
