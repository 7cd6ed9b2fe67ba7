import assert from "node:assert/strict";
import { Planner } from "../../../../src/cache/plan/planner.ts";
import type { StorePathHash } from "../../../../src/nix/store_path.ts";

const PATHS = 5_000;
const AT_ONCE = 64;

const hashAt = (at: number) => String(at).padStart(32, "0") as StorePathHash;

/**
 * A planner whose upstream lacks everything, and how much of the plan it holds at most. The upstream
 * answers once so many lookups are open, the newest first.
 */
function countingPlanner() {
  const counts = { taken: 0, told: 0, answered: 0, openMax: 0, heldMax: 0 };
  const open: (() => void)[] = [];
  const fetches = {
    isInFlight: () => false,
    async prefetch() {
      const answered = Promise.withResolvers<void>();
      open.push(answered.resolve);
      counts.openMax = Math.max(counts.openMax, open.length);
      counts.heldMax = Math.max(counts.heldMax, counts.taken - counts.told);
      if (open.length === Math.min(AT_ONCE, PATHS - counts.answered)) {
        counts.answered += open.length;
        while (open.length > 0) open.pop()?.();
      }
      await answered.promise;
      return { kind: "absent" };
    },
  };
  const planner = new Planner({
    metadata: Object({ findNarinfo: () => Promise.resolve(undefined) }),
    kept: { canOpen: () => Promise.resolve(false), lostAtMs: () => undefined },
    negative: { has: () => false },
    narinfoFetches: Object(fetches),
    pool: Object({
      isEmpty: false,
      order: () => ["http://u"],
      isDown: () => false,
      probeIfDown: () => Promise.resolve(),
    }),
    rates: { of: () => undefined },
    lastAnswers: Object({ of: () => ({ latenciesMs: [] }) }),
    nowMs: () => 0,
  });
  function* roots() {
    for (; counts.taken < PATHS; counts.taken++) yield hashAt(counts.taken);
  }
  return { planner, counts, roots: roots() };
}

Deno.test("planner: it looks up 64 paths at a time, and holds nothing of the others", async () => {
  const { planner, counts, roots } = countingPlanner();
  const { signal } = new AbortController();
  const tell = () => void counts.told++;
  await planner.planClosure(roots, { requestId: "test", signal, tell });
  assert.deepEqual([counts.told, counts.openMax], [PATHS, AT_ONCE]);
  assert.ok(counts.heldMax <= AT_ONCE, `${counts.heldMax} held`);
});

Deno.test("planner: it takes no further path while its client takes none", async () => {
  const { planner, counts, roots } = countingPlanner();
  const leaving = new AbortController();
  const { signal } = leaving;
  const [room, isFull] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const tell = () => {
    if (++counts.told === AT_ONCE) isFull.resolve();
    return room.promise;
  };
  const plan = planner.planClosure(roots, { requestId: "test", signal, tell });
  await isFull.promise;
  assert.equal(
    counts.taken,
    AT_ONCE - 1,
    "the last one is taken, and its generator waits behind it",
  );
  leaving.abort(new Error("left"));
  room.resolve();
  await assert.rejects(plan, { message: "left" });
});
