import { EitherSignal } from "../base/either_signal.ts";
import pLimit from "p-limit";
import { clock } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";

export interface UpstreamQueueOptions {
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

export interface QueuedRequest<Answer> {
  /** Sends the request; never throws. `signal` ends its answer, too. */
  readonly ask: (signal?: AbortSignal) => Promise<Answer>;
  /** Called with an answer that comes too late. */
  readonly late?: (answer: Answer) => void;
}

/**
 * Limits the requests of one kind that are in flight to an upstream. Further ones queue, for the
 * upstream's timeout at most.
 */
export class UpstreamQueue {
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
