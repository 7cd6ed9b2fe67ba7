import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import type { DocumentSource, QueuedDocumentSource } from "./document_source.ts";
import {
  type NarinfoReading,
  type NarinfoSource,
  noAnswerReasonOf,
  type QueuedNarinfoSource,
  type RequestRank,
} from "./upstream.ts";
import { UpstreamQueue, type UpstreamQueueOptions } from "./upstream_queue.ts";
import { isOverloaded, nextLoad, NO_LOAD } from "./upstream_load.ts";

/** Requests for narinfos in flight to one upstream: as many as eight busy Nix clients send. */
const NARINFOS_IN_FLIGHT_MAX = 200;

export interface QueuedNarinfoSourceOptions extends Omit<UpstreamQueueOptions, "inFlightMax"> {
  /** The upstream's timeout; an answer that takes over half of it is slow. */
  readonly timeoutMs: number;
}

/**
 * Queues the requests for an upstream's narinfos. A prefetch has no place in the queue: the pool
 * sends none while a client's request queues.
 */
export function queuedNarinfoSource(
  inner: NarinfoSource,
  { timeoutMs, ...options }: QueuedNarinfoSourceOptions,
): QueuedNarinfoSource {
  const { url, priority } = inner;
  const queue = new UpstreamQueue(url, { ...options, inFlightMax: NARINFOS_IN_FLIGHT_MAX });
  let load = NO_LOAD;
  const timed = async (
    storePathHash: StorePathHash,
    signal: AbortSignal | undefined,
    rank: RequestRank,
  ): Promise<NarinfoReading> => {
    const startedAtMs = clock.nowMs();
    const reading = await inner.narinfo(storePathHash, signal, rank);
    if (signal?.aborted) return reading;
    const tookMs = clock.nowMs() - startedAtMs;
    load = nextLoad(
      load,
      noAnswerReasonOf(reading) === undefined
        ? { type: "answer", tookMs, timeoutMs }
        : { type: "no-answer" },
    );
    return reading;
  };
  return {
    url,
    priority,
    describe: (signal) => inner.describe(signal),
    reach: (signal) => inner.reach(signal),
    narinfo: (storePathHash, signal, rank: RequestRank = "client") =>
      rank === "prefetch"
        ? timed(storePathHash, signal, rank)
        : queue.run({ ask: (ended) => timed(storePathHash, ended, rank) }, signal),
    noteNarTime(tookMs) {
      load = nextLoad(load, { type: "nar", tookMs, timeoutMs, atMs: clock.nowMs() });
    },
    busy: () => void (load = nextLoad(load, { type: "busy", atMs: clock.nowMs() })),
    get isOverloaded() {
      return isOverloaded(load, clock.nowMs());
    },
    get hasQueue() {
      return queue.isFull;
    },
  };
}

/** Requests for documents in flight to one upstream; a body may go on after its request. */
const DOCUMENTS_IN_FLIGHT_MAX = 100;

/** Queues the requests for an upstream's documents. */
export function queuedDocumentSource(
  inner: DocumentSource,
  options: Omit<UpstreamQueueOptions, "inFlightMax">,
): QueuedDocumentSource {
  const queue = new UpstreamQueue(inner.url, { ...options, inFlightMax: DOCUMENTS_IN_FLIGHT_MAX });
  return {
    url: inner.url,
    openDocument: (path, signal) =>
      queue.run({
        ask: (ended = signal) => inner.openDocument(path, ended),
        late: (answer) => answer.kind === "found" && answer.body.cancel(),
      }, signal),
  };
}
