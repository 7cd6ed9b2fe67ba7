import type { DocumentSource, QueuedDocumentSource } from "./document_source.ts";
import { UpstreamQueue, type UpstreamQueueOptions } from "./upstream_queue.ts";

/** Requests for documents in flight to one upstream; a body may go on after its request. */
const IN_FLIGHT_MAX = 100;

/** Queues the requests for an upstream's documents. */
export function queuedDocumentSource(
  inner: DocumentSource,
  options: Omit<UpstreamQueueOptions, "inFlightMax">,
): QueuedDocumentSource {
  const queue = new UpstreamQueue(inner.url, { ...options, inFlightMax: IN_FLIGHT_MAX });
  return {
    url: inner.url,
    openDocument: (path, signal) =>
      queue.run({
        ask: (ended = signal) => inner.openDocument(path, ended),
        late: (answer) => answer.kind === "found" && answer.body.cancel(),
      }, signal),
  };
}
