import { setImmediate as nextTurn } from "node:timers/promises";

/** Where a thread's time went. */
export interface Spent {
  /** All of it, but for that in which other processes used this thread's core. */
  readonly ms: number;
  /** On a core. For the rest the thread was blocked, as by the disk. */
  readonly onCoreMs: number;
  /** Read from files, and written to them. */
  readonly readBytes: number;
  readonly writtenBytes: number;
}

/** Times of a work. */
export interface Watched<Value> {
  readonly value: Value;
  readonly took: Spent;
  /** Longest time in which this thread ran nothing else. */
  readonly stop: Spent;
}

/** Runs `work` and watches the event loop meanwhile. */
export async function watched<Value>(work: () => Promise<Value>): Promise<Watched<Value>> {
  let over = false;
  let stop: Spent | undefined;
  const turns = (async () => {
    for (let last = spentSoFar(); !over;) {
      await nextTurn();
      const now = spentSoFar();
      const turn = spentBetween(last, now);
      if (stop === undefined || turn.ms > stop.ms) stop = turn;
      last = now;
    }
  })();
  await nextTurn();
  const before = spentSoFar();
  let value: Value;
  let took: Spent;
  try {
    value = await work();
    took = spentBetween(before, spentSoFar());
  } finally {
    over = true;
    await turns;
  }
  return { value, took, stop: stop ?? took };
}

/** The part of one of `count` equal works. */
export function each({ ms, onCoreMs, readBytes, writtenBytes }: Spent, count: number): Spent {
  return {
    ms: ms / count,
    onCoreMs: onCoreMs / count,
    readBytes: readBytes / count,
    writtenBytes: writtenBytes / count,
  };
}

function spentBetween(before: Spent, after: Spent): Spent {
  return {
    ms: after.ms - before.ms,
    onCoreMs: after.onCoreMs - before.onCoreMs,
    readBytes: after.readBytes - before.readBytes,
    writtenBytes: after.writtenBytes - before.writtenBytes,
  };
}

const MAIN_THREAD = `/proc/self/task/${Deno.pid}`;

/** Of the main thread, since it began. */
function spentSoFar(): Spent {
  const [readBytes = 0, writtenBytes = 0] = Deno.readTextFileSync(`${MAIN_THREAD}/io`)
    .split("\n").map((line) => Number(line.split(": ")[1]));
  let [onCoreNs, waitedNs] = scheduled();
  for (;;) {
    const nowMs = performance.now();
    const before = waitedNs;
    [onCoreNs, waitedNs] = scheduled();
    // Otherwise a wait for the core between both would count as the work's.
    if (waitedNs > before) continue;
    const onCoreMs = onCoreNs / 1_000_000;
    return { ms: nowMs - waitedNs / 1_000_000, onCoreMs, readBytes, writtenBytes };
  }
}

/** Nanoseconds on a core, and nanoseconds waiting for one. */
function scheduled(): readonly [number, number] {
  const [onCoreNs = 0, waitedNs = 0] = Deno.readTextFileSync(`${MAIN_THREAD}/schedstat`)
    .split(" ").map(Number);
  return [onCoreNs, waitedNs];
}
