import type { Span, SpanStart, Tracer } from "../telemetry/tracer.ts";
import { requestFacts } from "./traced_narinfo_source.ts";
import { type NarBodySource, NoAnswer } from "./upstream.ts";

/** A span for each request for a NAR that is not kept, up to the begin of its body. */
export function tracedNarSource(inner: NarBodySource, tracer: Tracer): NarBodySource {
  const { url } = inner;
  const start = (method: "GET" | "HEAD", location: string): SpanStart => {
    return { name: `${method} nar`, kind: "client", facts: requestFacts(url, location, method) };
  };
  return {
    url,
    async openNar(location, offset, signal, ifTag) {
      const asked = await tracer.span(
        start("GET", location),
        (span) => told(span, inner.openNar(location, offset, signal, ifTag), signal),
      );
      return asked();
    },
    async statNar(location) {
      const asked = await tracer.span(
        start("HEAD", location),
        (span) => told(span, inner.statNar(location)),
      );
      return asked();
    },
  };
}

/** What is found, or a throw, once the span was told of it. */
async function told<Found>(
  span: Span,
  asked: Promise<Found | undefined>,
  signal?: AbortSignal,
): Promise<() => Found | undefined> {
  try {
    const found = await asked;
    span.set({ "larder.upstream.result": found === undefined ? "absent" : "found" });
    return () => found;
  } catch (error) {
    span.set({ "larder.upstream.result": signal?.aborted ? "cancelled" : "failed" });
    if (!signal?.aborted) span.fail(error instanceof NoAnswer ? error.reason : "upstream");
    return () => {
      throw error;
    };
  }
}
