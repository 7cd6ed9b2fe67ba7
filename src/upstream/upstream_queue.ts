import pLimit from "p-limit";
import type { Logger } from "../telemetry/logger.ts";
import { type OutageLine, OutageLog } from "../telemetry/outage_log.ts";

const TOO_SLOW: OutageLine = {
  level: "warn",
  message: "upstream too slow for all that it is asked: some is not answered in time",
};

export interface UpstreamQueueOptions {
  /** Requests under way at the same time. */
  readonly askedMax: number;
  /** So long a request that had to wait for its turn may take, its answer included. */
  readonly limitMs: number;
  readonly log: Logger;
}

/** We could not ask in time, which says nothing about the upstream. */
export interface Late {
  readonly kind: "late";
}

export interface Queued<Answer> {
  /** Asks; never throws. `signal` ends what came of it, too. */
  readonly ask: (signal?: AbortSignal) => Promise<Answer>;
  /** Told of an answer that comes when nobody waits for it any more. */
  readonly unwanted?: (answer: Answer) => void;
}

/**
 * Asks an upstream so many questions of a kind at a time; further ones wait for their turn, and
 * none of them longer than the upstream itself is waited for.
 */
export class UpstreamQueue {
  readonly #upstream: string;
  readonly #options: UpstreamQueueOptions;
  readonly #atOnce: ReturnType<typeof pLimit>;
  readonly #outage: OutageLog;

  constructor(upstream: string, options: UpstreamQueueOptions) {
    this.#upstream = upstream;
    this.#options = options;
    this.#atOnce = pLimit(options.askedMax);
    this.#outage = new OutageLog(options.log, "upstream keeps up again");
  }

  run<Answer>(queued: Queued<Answer>, signal?: AbortSignal): Promise<Answer | Late> {
    const { activeCount, pendingCount } = this.#atOnce;
    if (activeCount + pendingCount >= this.#options.askedMax) return this.#wait(queued, signal);
    this.#outage.worked({ upstream: this.#upstream });
    return this.#atOnce(() => queued.ask(signal));
  }

  #wait<Answer>(
    { ask, unwanted }: Queued<Answer>,
    signal?: AbortSignal,
  ): Promise<Answer | Late> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer | Late>();
    const ended = new AbortController();
    const end = () => {
      ended.abort();
      resolve({ kind: "late" });
    };
    const timer = setTimeout(() => {
      this.#outage.failed(TOO_SLOW, { upstream: this.#upstream });
      end();
    }, this.#options.limitMs);
    signal?.addEventListener("abort", end, { once: true });
    this.#atOnce(async () => {
      // Nobody waits any more.
      if (ended.signal.aborted) return;
      const answer = await ask(AbortSignal.any([ended.signal, ...(signal ? [signal] : [])]));
      if (ended.signal.aborted) unwanted?.(answer);
      else resolve(answer);
    }).catch(reject);
    return promise.finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
    });
  }
}
