import type { NarSource } from "../../metadata/metadata_store.ts";
import { clock } from "../../runtime/current.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Span, SpanStart, Tracer } from "../../telemetry/tracer.ts";
import type { NarRates } from "../../upstream/pooled_upstream.ts";
import { requestFacts } from "../../upstream/watched_sources.ts";
import type {
  FetchFailure,
  FetchListener,
  FetchOutcome,
  NarFetch,
  NarFetcher,
} from "./nar_fetcher.ts";

/** The result of a failed fetch, as label of the upstream's metrics. */
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

export interface FetchObservers {
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  /** False for another member, whose bytes an upstream has sent to it. Default: true. */
  readonly isUpstream?: (url: string) => boolean;
  /** Has the bytes of each transfer as they come. */
  readonly rates?: Pick<NarRates, "begin">;
}

/**
 * A span for each source of a NAR file, up to its last byte. It times the requests to upstreams,
 * and counts the received bytes.
 */
export function observedFetcher<Order>(
  inner: NarFetcher<Order>,
  { metrics, tracer, isUpstream = () => true, rates }: FetchObservers,
): NarFetcher<Order> {
  const bytes = metrics.series("upstream_bytes_total", {});
  return {
    begin(order: Order, listener: FetchListener): NarFetch {
      let counted = 0;
      let isCounting = true;
      let noteRate: ((bytes: number) => void) | undefined;
      const count = (received: number) => {
        const more = Math.max(0, received - counted);
        if (isCounting) bytes.add(more);
        noteRate?.(more);
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
        from: (source, taken, isFinal) =>
          tracer.span(sourceSpan(source), async (span) => {
            const startedAtMs = clock.nowMs();
            const { upstream } = source;
            const isCounted = isUpstream(upstream);
            const outcome = await fetch.from(source, () => {
              isCounting = isCounted;
              noteRate = isCounted ? rates?.begin(upstream) : undefined;
              taken?.();
            }, isFinal);
            if (outcome.type === "end") count(outcome.fileSize);
            noteOutcome(span, outcome);
            if (!isCounted) return outcome;
            const result = resultOf(outcome);
            metrics.histogram("upstream_request_duration_seconds", { upstream, result })
              .observe((clock.nowMs() - startedAtMs) / 1_000);
            return outcome;
          }),
        [Symbol.dispose]: () => fetch[Symbol.dispose](),
      };
    },
  };
}

function sourceSpan({ upstream, location }: NarSource): SpanStart {
  return { name: "GET nar", kind: "client", facts: requestFacts(upstream, location) };
}

function resultOf(outcome: FetchOutcome) {
  if (outcome.type === "failed") return RESULTS[outcome.reason];
  return outcome.type === "end" ? "found" : outcome.type;
}

const GIVEN_UP_REASONS: readonly FetchFailure[] = ["cancelled", "outrun"];

/** Notes the outcome on the span. A cancelled fetch is no failure. */
function noteOutcome(span: Span, outcome: FetchOutcome): void {
  const { type, status } = outcome;
  const isCancelled = type === "failed" && GIVEN_UP_REASONS.includes(outcome.reason);
  span.set({
    "larder.upstream.result": isCancelled ? "cancelled" : type,
    ...(status === undefined ? {} : { "http.response.status_code": status }),
    ...(type === "end" ? { "larder.nar.file_size": outcome.fileSize } : {}),
  });
  if (type === "failed" && !isCancelled) span.fail(outcome.reason);
}
