import { setImmediate as nextTurn } from "node:timers/promises";

/** Times of a work, without those in which other processes used this thread's core. */
export interface Watched<Value> {
  readonly value: Value;
  readonly tookMs: number;
  /** Longest time in which this thread ran nothing else. */
  readonly stopMs: number;
}

/** Runs `work` and watches the event loop meanwhile. */
export async function watched<Value>(work: () => Promise<Value>): Promise<Watched<Value>> {
  let over = false;
  let stopMs = 0;
  const turns = (async () => {
    for (let lastMs = ownMs(); !over;) {
      await nextTurn();
      const nowMs = ownMs();
      stopMs = Math.max(stopMs, nowMs - lastMs);
      lastMs = nowMs;
    }
  })();
  await nextTurn();
  const startedAtMs = ownMs();
  try {
    const value = await work();
    return { value, tookMs: ownMs() - startedAtMs, stopMs };
  } finally {
    over = true;
    await turns;
  }
}

/** A clock that stops while this thread waits for a core. */
function ownMs(): number {
  // Of the main thread: nanoseconds on a core, nanoseconds waiting for one, number of slices.
  const [, waitedNs = 0] = Deno.readTextFileSync("/proc/self/schedstat").split(" ").map(Number);
  return performance.now() - waitedNs / 1_000_000;
}
