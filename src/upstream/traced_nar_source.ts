import type { Span, Tracer } from "../telemetry/tracer.ts";
import { requestFacts } from "./traced_narinfo_source.ts";
import { type NarBodySource, NoAnswer } from "./upstream.ts";

/** A span for each request for a NAR's size. The reader of a body traces it, up to its end. */
export function tracedNarSource(inner: NarBodySource, tracer: Tracer): NarBodySource {
  const { url } = inner;
  return {
    url,
    openNar: (location, request) => inner.openNar(location, request),
    async statNar(location, signal) {
      const facts = requestFacts(url, location, "HEAD");
      const result = await tracer.span(
        { name: "HEAD nar", kind: "client", facts },
        (span) => noted(span, inner.statNar(location, signal)),
      );
      return result();
    },
  };
}

/** Notes the result on the span, then returns a function that returns or throws it. */
async function noted<Found>(
  span: Span,
  result: Promise<Found | undefined>,
): Promise<() => Found | undefined> {
  try {
    const found = await result;
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
