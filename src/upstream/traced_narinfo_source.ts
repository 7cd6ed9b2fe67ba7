import type { Span, SpanFacts, Tracer } from "../telemetry/tracer.ts";
import type { NarinfoSource, UpstreamReading } from "./upstream.ts";

/** A span for each narinfo request to an upstream. */
export function tracedNarinfoSource(inner: NarinfoSource, tracer: Tracer): NarinfoSource {
  return {
    url: inner.url,
    priority: inner.priority,
    describe: (signal) => inner.describe(signal),
    reach: (signal) => inner.reach(signal),
    narinfo: (storePathHash, signal) =>
      tracer.span({
        name: "GET narinfo",
        kind: "client",
        facts: requestFacts(inner.url, `${storePathHash}.narinfo`),
      }, async (span) => {
        const reading = await inner.narinfo(storePathHash, signal);
        noteReading(span, reading, signal);
        return reading;
      }),
  };
}

/** Notes the result of a request. An absence is an answer; a cancelled request is no failure. */
export function noteReading(span: Span, reading: UpstreamReading, signal?: AbortSignal): void {
  const result = signal?.aborted ? "cancelled" : reading.kind;
  span.set({ "larder.upstream.result": result });
  if (result === "failed" && reading.kind === "failed") span.fail(reading.reason);
}

/** The facts of a request, in OpenTelemetry's words. `upstream` has no credentials. */
export function requestFacts(
  upstream: string,
  path: string,
  method: "GET" | "HEAD" = "GET",
): SpanFacts {
  const { protocol, hostname, port } = new URL(upstream);
  return {
    "http.request.method": method,
    // A query may be a secret of the upstream.
    "url.full": `${upstream}/${path.replace(/\?.*$/, "")}`,
    // Not with the brackets of an IPv6 address.
    "server.address": hostname.replace(/^\[(.*)\]$/, "$1"),
    "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
  };
}
