import type { DocumentSource, QueuedDocumentSource } from "./document_source.ts";
import { UpstreamQueue, type UpstreamQueueOptions } from "./upstream_queue.ts";

/** Documents asked of one upstream at the same time; their bodies may take longer. */
const ASKED_MAX = 100;

/** Puts a queue in front of an upstream's documents. */
export function queuedDocumentSource(
  inner: DocumentSource,
  options: Omit<UpstreamQueueOptions, "askedMax">,
): QueuedDocumentSource {
  const queue = new UpstreamQueue(inner.url, { ...options, askedMax: ASKED_MAX });
  return {
    url: inner.url,
    openDocument: (path, signal) =>
      queue.run({
        ask: (ended = signal) => inner.openDocument(path, ended),
        unwanted: (answer) => answer.kind === "found" && answer.body.cancel(),
      }, signal),
  };
}
