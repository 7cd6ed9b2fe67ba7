import type { Span, Tracer } from "../telemetry/tracer.ts";
import { requestFacts } from "./traced_narinfo_source.ts";
import { type NarBodySource, NoAnswer } from "./upstream.ts";

/** A span for each request for a NAR's size. Who reads a body knows when it is over. */
export function tracedNarSource(inner: NarBodySource, tracer: Tracer): NarBodySource {
  const { url } = inner;
  return {
    url,
    openNar: (location, request) => inner.openNar(location, request),
    async statNar(location, signal) {
      const facts = requestFacts(url, location, "HEAD");
      const asked = await tracer.span(
        { name: "HEAD nar", kind: "client", facts },
        (span) => told(span, inner.statNar(location, signal)),
      );
      return asked();
    },
  };
}

/** What is found, or a throw, once the span was told of it. */
async function told<Found>(
  span: Span,
  asked: Promise<Found | undefined>,
): Promise<() => Found | undefined> {
  try {
    const found = await asked;
    span.set({ "larder.upstream.result": found === undefined ? "absent" : "found" });
    return () => found;
  } catch (error) {
    span.set({ "larder.upstream.result": "failed" });
    span.fail(error instanceof NoAnswer ? error.reason : "upstream");
    return () => {
      throw error;
    };
  }
}
