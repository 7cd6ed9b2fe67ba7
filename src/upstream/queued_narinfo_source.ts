import type { NarinfoSource, QueuedNarinfoSource } from "./upstream.ts";
import { UpstreamQueue, type UpstreamQueueOptions } from "./upstream_queue.ts";

/** Narinfos asked of one upstream at the same time: as many as eight busy Nix clients send. */
const ASKED_MAX = 200;

/** Puts a queue in front of an upstream's narinfos. */
export function queuedNarinfoSource(
  inner: NarinfoSource,
  options: Omit<UpstreamQueueOptions, "askedMax">,
): QueuedNarinfoSource {
  const { url, priority } = inner;
  const queue = new UpstreamQueue(url, { ...options, askedMax: ASKED_MAX });
  return {
    url,
    priority,
    describe: (signal) => inner.describe(signal),
    reach: (signal) => inner.reach(signal),
    narinfo: (storePathHash, signal) =>
      queue.run({ ask: (signal) => inner.narinfo(storePathHash, signal) }, signal),
  };
}
