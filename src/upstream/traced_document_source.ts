import type { Tracer } from "../telemetry/tracer.ts";
import type { DocumentSource } from "./document_source.ts";
import { noteReading, requestFacts } from "./traced_narinfo_source.ts";

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
