import { setImmediate as nextTurn } from "node:timers/promises";

/** Without the time in which other processes had this thread's core. */
export interface Watched<Value> {
  readonly value: Value;
  readonly tookMs: number;
  /** The longest time in which nothing else could run on this thread. */
  readonly stopMs: number;
}

/** Does `work` and watches the event loop meanwhile: it turns without a pause. */
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

/** A clock that stands still while this thread could run and another one had the core. */
function ownMs(): number {
  // Of the main thread: nanoseconds on a core, nanoseconds waiting for one, how often.
  const [, waitedNs = 0] = Deno.readTextFileSync("/proc/self/schedstat").split(" ").map(Number);
  return performance.now() - waitedNs / 1_000_000;
}
