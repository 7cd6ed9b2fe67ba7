import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Span, SpanFacts, Tracer } from "../telemetry/tracer.ts";
import {
  type DocumentSource,
  type NarBodySource,
  type NarinfoReading,
  type NarinfoSource,
  NoAnswer,
  type RequestRank,
  SLOW_ANSWER_MS,
  type UpstreamReading,
} from "./upstream.ts";

/** A span for each narinfo request to an upstream. */
export function tracedNarinfoSource(inner: NarinfoSource, tracer: Tracer): NarinfoSource {
  return {
    url: inner.url,
    priority: inner.priority,
    describe: (signal) => inner.describe(signal),
    reach: (signal) => inner.reach(signal),
    narinfo: (storePathHash, signal, rank) =>
      tracer.span({
        name: "GET narinfo",
        kind: "client",
        facts: requestFacts(inner.url, `${storePathHash}.narinfo`),
      }, async (span) => {
        const reading = await inner.narinfo(storePathHash, signal, rank);
        noteReading(span, reading, signal);
        return reading;
      }),
  };
}

/** Notes the result of a request. An absence is an answer; a cancelled request is no failure. */
function noteReading(span: Span, reading: UpstreamReading, signal?: AbortSignal): void {
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

/** A span for each document request to an upstream; it ends when the body begins. */
export function tracedDocumentSource(inner: DocumentSource, tracer: Tracer): DocumentSource {
  return {
    url: inner.url,
    openDocument: (path, signal) =>
      tracer.span({
        name: "GET document",
        kind: "client",
        facts: requestFacts(inner.url, path),
      }, async (span) => {
        const answer = await inner.openDocument(path, signal);
        noteReading(span, answer, signal);
        return answer;
      }),
  };
}

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

/** Gets the facts that upstreams' status shows beside their narinfos. */
interface SourceWatch {
  /** Called with the time that an answer took. */
  took(upstream: string, ms: number): void;
  /** Called with the error of a probe, or of a request for the priority. */
  undescribed(upstream: string, error: unknown): void;
}

/** Times the narinfo requests to an upstream, by their results. */
export function meteredNarinfoSource(
  inner: NarinfoSource,
  metrics: Metrics,
  watch: SourceWatch,
): NarinfoSource {
  const { url: upstream, priority } = inner;
  return {
    url: upstream,
    priority,
    describe: (signal) =>
      inner.describe(signal).catch((error) => {
        if (!signal?.aborted) watch.undescribed(upstream, error);
        throw error;
      }),
    reach: (signal) => inner.reach(signal),
    async narinfo(
      storePathHash: StorePathHash,
      signal?: AbortSignal,
      rank?: RequestRank,
    ): Promise<NarinfoReading> {
      const startedAtMs = clock.nowMs();
      const reading = await inner.narinfo(storePathHash, signal, rank);
      const result = signal?.aborted ? "cancelled" : resultOf(reading);
      const ms = clock.nowMs() - startedAtMs;
      metrics.histogram("upstream_request_duration_seconds", { upstream, result })
        .observe(ms / 1_000);
      if (reading.kind === "failed" || signal?.aborted) return reading;
      watch.took(upstream, ms);
      return ms < SLOW_ANSWER_MS ? reading : { ...reading, tookMs: Math.round(ms) };
    },
  };
}

function resultOf(reading: NarinfoReading) {
  return reading.kind === "failed" ? reading.reason : reading.kind;
}
