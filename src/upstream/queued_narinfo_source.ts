import pLimit from "p-limit";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Trouble } from "../telemetry/trouble.ts";
import type { NarinfoSource, PooledSource, QueuedReading } from "./upstream.ts";

/** Narinfos asked of one upstream at the same time: as many as eight busy Nix clients send. */
const ASKED_MAX = 200;

export interface QueueOptions {
  /** So long a question that had to wait for its turn may take, its answer included. */
  readonly limitMs: number;
  readonly log: Logger;
}

/**
 * Asks an upstream for so many narinfos at a time; further questions wait for their turn, and none
 * of them longer than the upstream itself is waited for: such a reading is "late".
 */
export function queuedNarinfoSource(
  inner: NarinfoSource,
  { limitMs, log }: QueueOptions,
): PooledSource {
  const { url: upstream, priority } = inner;
  const atOnce = pLimit(ASKED_MAX);
  const trouble = new Trouble(log, {
    level: "warn",
    begun: "upstream too slow for all that it is asked: some is not answered in time",
    over: "upstream keeps up again",
  });

  function wait(storePathHash: StorePathHash, signal?: AbortSignal): Promise<QueuedReading> {
    const { promise, resolve, reject } = Promise.withResolvers<QueuedReading>();
    const ended = new AbortController();
    const end = () => {
      ended.abort();
      resolve({ kind: "late" });
    };
    const timer = setTimeout(() => {
      trouble.met({ upstream });
      end();
    }, limitMs);
    signal?.addEventListener("abort", end, { once: true });
    atOnce(async () => {
      // Nobody waits any more.
      if (!ended.signal.aborted) resolve(await inner.narinfo(storePathHash, ended.signal));
    }).catch(reject);
    return promise.finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
    });
  }

  return {
    url: upstream,
    priority,
    describe: (signal) => inner.describe(signal),
    reach: (signal) => inner.reach(signal),
    narinfo(storePathHash, signal) {
      if (atOnce.activeCount + atOnce.pendingCount >= ASKED_MAX) return wait(storePathHash, signal);
      trouble.over({ upstream });
      return atOnce(() => inner.narinfo(storePathHash, signal));
    },
  };
}
