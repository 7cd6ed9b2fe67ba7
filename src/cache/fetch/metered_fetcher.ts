import type { Metrics } from "../../telemetry/metrics.ts";
import type {
  FetchFailure,
  FetchListener,
  FetchOrder,
  NarFetch,
  NarFetcher,
  SourceOutcome,
} from "./nar_fetcher.ts";

/** What a fetch that failed says of the upstream. */
const RESULTS = {
  timeout: "timeout",
  unreachable: "unreachable",
  status: "status",
  upstream: "broken",
  stalled: "broken",
  size: "garbage",
  differs: "garbage",
  outrun: "cancelled",
  room: "cancelled",
  disk: "cancelled",
  cancelled: "cancelled",
} as const satisfies Readonly<Record<FetchFailure, string>>;

/** What a source's outcome is called in metrics. */
export function resultOf(outcome: SourceOutcome) {
  if (outcome.type === "failed") return RESULTS[outcome.reason];
  return outcome.type === "end" ? "found" : outcome.type;
}

/** Times the NAR requests to upstreams, and counts the bytes that come in. */
export function meteredFetcher(inner: NarFetcher, metrics: Metrics): NarFetcher {
  const bytes = metrics.series("upstream_bytes_total", {});
  return {
    begin(order: FetchOrder, listener: FetchListener): NarFetch {
      let counted = 0;
      const count = (received: number) => {
        bytes.add(Math.max(0, received - counted));
        counted = Math.max(counted, received);
      };
      const fetch = inner.begin(order, {
        progress(progress) {
          if (progress.type === "bytes") count(progress.received);
          listener.progress(progress);
        },
        room: (wanted) => listener.room(wanted),
      });
      return {
        async from(source, taken) {
          const startedAtMs = performance.now();
          const outcome = await fetch.from(source, taken);
          if (outcome.type === "end") count(outcome.fileSize);
          const { upstream } = source;
          const result = resultOf(outcome);
          metrics.histogram("upstream_request_duration_seconds", { upstream, result })
            .observe((performance.now() - startedAtMs) / 1_000);
          return outcome;
        },
        [Symbol.dispose]: () => fetch[Symbol.dispose](),
      };
    },
  };
}
