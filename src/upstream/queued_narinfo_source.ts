import type { NarinfoSource, QueuedNarinfoSource } from "./upstream.ts";
import { UpstreamQueue, type UpstreamQueueOptions } from "./upstream_queue.ts";

/** Requests for narinfos in flight to one upstream: as many as eight busy Nix clients send. */
const IN_FLIGHT_MAX = 200;

/** Queues the requests for an upstream's narinfos. */
export function queuedNarinfoSource(
  inner: NarinfoSource,
  options: Omit<UpstreamQueueOptions, "inFlightMax">,
): QueuedNarinfoSource {
  const { url, priority } = inner;
  const queue = new UpstreamQueue(url, { ...options, inFlightMax: IN_FLIGHT_MAX });
  return {
    url,
    priority,
    describe: (signal) => inner.describe(signal),
    reach: (signal) => inner.reach(signal),
    narinfo: (storePathHash, signal) =>
      queue.run({ ask: (signal) => inner.narinfo(storePathHash, signal) }, signal),
  };
}
