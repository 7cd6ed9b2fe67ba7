import type { SpanFacts, Tracer } from "../telemetry/tracer.ts";
import type { NarinfoSource } from "./upstream.ts";

/** A span for each narinfo request to an upstream. */
export function tracedNarinfoSource(inner: NarinfoSource, tracer: Tracer): NarinfoSource {
  return {
    url: inner.url,
    priority: inner.priority,
    describe: () => inner.describe(),
    narinfo: (storePathHash, signal) =>
      tracer.span({
        name: "GET narinfo",
        kind: "client",
        facts: requestFacts(inner.url, `${storePathHash}.narinfo`),
      }, async (span) => {
        const reading = await inner.narinfo(storePathHash, signal);
        span.set({ "larder.upstream.result": reading.kind });
        if (reading.kind === "failed") span.set({ "error.type": reading.reason });
        return reading;
      }),
  };
}

/** What a request to an upstream is, in OpenTelemetry's words. `upstream` has no credentials. */
export function requestFacts(upstream: string, path: string): SpanFacts {
  const { protocol, hostname, port } = new URL(upstream);
  return {
    "http.request.method": "GET",
    // A query may be a secret of the upstream's.
    "url.full": `${upstream}/${path.replace(/\?.*$/, "")}`,
    "server.address": hostname,
    "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
  };
}
