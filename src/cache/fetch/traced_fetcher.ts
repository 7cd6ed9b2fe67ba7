import type { NarSource } from "../../metadata/metadata_store.ts";
import type { Span, SpanStart, Tracer } from "../../telemetry/tracer.ts";
import { requestFacts } from "../../upstream/traced_narinfo_source.ts";
import type { FetchFailure, NarFetcher, SourceOutcome } from "./nar_fetcher.ts";

/** A span for each source that a NAR file is asked of. */
export function tracedFetcher(inner: NarFetcher, tracer: Tracer): NarFetcher {
  return {
    begin(order, listener) {
      const fetch = inner.begin(order, listener);
      return {
        from: (source, taken) =>
          tracer.span(sourceSpan(source), async (span) => {
            const outcome = await fetch.from(source, taken);
            tellOutcome(span, outcome);
            return outcome;
          }),
        [Symbol.dispose]: () => fetch[Symbol.dispose](),
      };
    },
  };
}

/** The span of asking a source. */
export function sourceSpan({ upstream, location }: NarSource): SpanStart {
  return { name: "GET nar", kind: "client", facts: requestFacts(upstream, location) };
}

const GIVEN_UP_REASONS: readonly FetchFailure[] = ["cancelled", "outrun"];

/** What came of a source. Whoever gave it up has nothing to blame it for. */
export function tellOutcome(span: Span, outcome: SourceOutcome): void {
  const { type, status } = outcome;
  const isCancelled = type === "failed" && GIVEN_UP_REASONS.includes(outcome.reason);
  span.set({
    "larder.upstream.result": isCancelled ? "cancelled" : type,
    ...(status === undefined ? {} : { "http.response.status_code": status }),
    ...(type === "end" ? { "larder.nar.file_size": outcome.fileSize } : {}),
  });
  if (type === "failed" && !isCancelled) span.fail(outcome.reason);
}
