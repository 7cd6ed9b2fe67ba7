import pLimit from "p-limit";
import { EitherSignal } from "../base/either_signal.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import {
  type DocumentSource,
  type NarinfoReading,
  type NarinfoSource,
  noAnswerReasonOf,
  type QueuedDocumentSource,
  type QueuedNarinfoSource,
  type RequestRank,
} from "./upstream.ts";

interface UpstreamQueueOptions {
  /** More requests than this wait in the queue. */
  readonly inFlightMax: number;
  /** The longest time for a request that queues, its answer included. */
  readonly limitMs: number;
  readonly log: Logger;
}

/** A request queued for too long, which says nothing about the upstream. */
export interface QueueTimeout {
  readonly kind: "queue-timeout";
}

interface QueuedRequest<Answer> {
  /** Sends the request; never throws. `signal` ends its answer, too. */
  readonly ask: (signal?: AbortSignal) => Promise<Answer>;
  /** Called with an answer that comes too late. */
  readonly late?: (answer: Answer) => void;
}

/**
 * Limits the requests of one kind that are in flight to an upstream. Further ones queue, for the
 * upstream's timeout at most.
 */
class UpstreamQueue {
  readonly #upstream: string;
  readonly #options: UpstreamQueueOptions;
  readonly #atOnce: ReturnType<typeof pLimit>;
  readonly #outage;

  constructor(upstream: string, options: UpstreamQueueOptions) {
    this.#upstream = upstream;
    this.#options = options;
    this.#atOnce = pLimit(options.inFlightMax);
    this.#outage = new OutageLog(options.log, "upstream-keeps-up");
  }

  /** True while the next request would queue. */
  get isFull(): boolean {
    const { activeCount, pendingCount } = this.#atOnce;
    return activeCount + pendingCount >= this.#options.inFlightMax;
  }

  run<Answer>(queued: QueuedRequest<Answer>, signal?: AbortSignal): Promise<Answer | QueueTimeout> {
    if (this.isFull) return this.#wait(queued, signal);
    this.#outage.worked({ upstream: this.#upstream });
    return this.#atOnce(() => queued.ask(signal)).finally(() => this.#ended());
  }

  /** A request is over. Without any other one nothing can be too slow. */
  #ended(): void {
    const { activeCount, pendingCount } = this.#atOnce;
    if (activeCount + pendingCount === 0) this.#outage.worked({ upstream: this.#upstream });
  }

  #wait<Answer>(
    { ask, late }: QueuedRequest<Answer>,
    signal?: AbortSignal,
  ): Promise<Answer | QueueTimeout> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer | QueueTimeout>();
    const ended = new AbortController();
    const end = () => {
      ended.abort();
      resolve({ kind: "queue-timeout" });
    };
    const timer = clock.after(this.#options.limitMs, () => {
      this.#outage.failed("upstream-queue-late", {
        upstream: this.#upstream,
      });
      end();
    });
    signal?.addEventListener("abort", end, { once: true });
    this.#atOnce(async () => {
      // It is too late to send it.
      if (ended.signal.aborted) return;
      using either = new EitherSignal(ended.signal, ...(signal ? [signal] : []));
      const answer = await ask(either.signal);
      if (ended.signal.aborted) late?.(answer);
      else resolve(answer);
    }).catch(reject).finally(() => this.#ended());
    return promise.finally(() => {
      timer.cancel();
      signal?.removeEventListener("abort", end);
    });
  }
}

/** Requests for narinfos in flight to one upstream: as many as eight busy Nix clients send. */
const NARINFOS_IN_FLIGHT_MAX = 200;

interface QueuedNarinfoSourceOptions extends Omit<UpstreamQueueOptions, "inFlightMax"> {
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

/** How long an upstream that was too busy, or slow with a NAR, gets no prefetch. */
const OF_LATE_MS = 60_000;

/** An upstream answers these when it has too much to do. */
export const BUSY_STATUSES: ReadonlySet<number> = new Set([429, 503]);

/** Signs that an upstream has no capacity beyond the requests that clients wait for. */
interface UpstreamLoad {
  /** Its last answer took over half its timeout, or did not come. */
  readonly isSlow: boolean;
  /** Time of its last NAR that took over half the timeout, unless a quick one followed. */
  readonly slowNarAtMs: number;
  /** Time of its last refusal of a request because it was too busy. */
  readonly busyAtMs: number;
}

type LoadEvent = Readonly<
  | { type: "answer"; tookMs: number; timeoutMs: number }
  | { type: "no-answer" }
  | { type: "nar"; tookMs: number; timeoutMs: number; atMs: number }
  | { type: "busy"; atMs: number }
>;

export const NO_LOAD: UpstreamLoad = {
  isSlow: false,
  slowNarAtMs: -Infinity,
  busyAtMs: -Infinity,
};

/** The only place where an upstream's load changes. */
export function nextLoad(now: UpstreamLoad, event: LoadEvent): UpstreamLoad {
  switch (event.type) {
    case "answer":
      return { ...now, isSlow: event.tookMs > event.timeoutMs / 2 };
    case "no-answer":
      return { ...now, isSlow: true };
    case "nar":
      return { ...now, slowNarAtMs: event.tookMs > event.timeoutMs / 2 ? event.atMs : -Infinity };
    case "busy":
      return { ...now, busyAtMs: Math.max(now.busyAtMs, event.atMs) };
  }
}

export function isOverloaded(load: UpstreamLoad, nowMs: number): boolean {
  const { isSlow, slowNarAtMs, busyAtMs } = load;
  return isSlow || nowMs - Math.max(slowNarAtMs, busyAtMs) < OF_LATE_MS;
}
