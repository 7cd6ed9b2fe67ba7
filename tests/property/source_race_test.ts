import assert from "node:assert/strict";
import fc from "fast-check";
import { firstToAnswer, type SourceAttempt } from "../../src/cache/sources/nar_attempts.ts";
import { PlayedTime } from "../support/played_time.ts";
import { checkProperty } from "../support/property.ts";

const HEDGE_AFTER_MS = 1_000;

interface Runner {
  /** From being asked to the answer. */
  readonly tookMs: number;
  readonly isGood: boolean;
  /** To be found at all. */
  readonly findMs: number;
}

const runner = fc.record({
  tookMs: fc.integer({ min: 0, max: 5_000 }),
  isGood: fc.boolean(),
  findMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2_000 })),
});

interface Run {
  readonly askedAtMs: readonly number[];
  readonly cancelled: ReadonlySet<number>;
  readonly putBack: ReadonlySet<number>;
  readonly winner: number | undefined;
  readonly overAtMs: number;
}

async function race(runners: readonly Runner[]): Promise<Run> {
  using time = new PlayedTime();
  const after = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));
  const askedAtMs: number[] = [];
  const [cancelled, putBack] = [new Set<number>(), new Set<number>()];
  let found = 0;
  let over: Omit<Run, "askedAtMs" | "cancelled" | "putBack"> | undefined;
  firstToAnswer<SourceAttempt & { readonly index: number }>({
    async next() {
      const index = found++;
      const one = runners[index];
      if (one === undefined) return undefined;
      await after(one.findMs);
      return { upstream: String(index), location: "" };
    },
    ask(source) {
      const index = Number(source.upstream);
      const { tookMs, isGood } = runners[index] ?? { tookMs: 0, isGood: false };
      askedAtMs[index] = time.nowMs;
      const answered = after(tookMs).then(() => isGood);
      return { source, index, answered, cancel: () => void cancelled.add(index) };
    },
    putBack: ({ upstream }) => void putBack.add(Number(upstream)),
    hedgeAfterMs: HEDGE_AFTER_MS,
  }).then((winner) => over = { winner: winner?.index, overAtMs: time.nowMs });
  for (let turn = 0; over === undefined; turn++) {
    assert.ok(turn < 1_000, "it never ends");
    await time.advance(50);
  }
  // The race puts back an answer that comes too late.
  await time.advance(10_000);
  return { askedAtMs, cancelled, putBack, ...over };
}

checkProperty(
  "race: the first good answer wins, at once, and all others that wait are given up",
  fc.asyncProperty(fc.array(runner, { maxLength: 6 }), async (runners) => {
    const { askedAtMs, cancelled, putBack, winner, overAtMs } = await race(runners);
    const answers = askedAtMs.map((atMs, index) => {
      const { tookMs = 0, isGood = false } = runners[index] ?? {};
      return { index, atMs: atMs + tookMs, isGood };
    });
    const goodAtMs = answers.filter(({ isGood }) => isGood).map(({ atMs }) => atMs);
    if (winner === undefined) {
      assert.deepEqual([goodAtMs, askedAtMs.length], [[], runners.length]);
      return;
    }
    assert.equal(overAtMs, answers[winner]?.atMs);
    assert.equal(overAtMs, Math.min(...goodAtMs));
    for (const { index, atMs } of answers) {
      if (atMs > overAtMs) assert.ok(cancelled.has(index) && putBack.has(index), `${index}`);
      if (atMs < overAtMs) assert.ok(!cancelled.has(index), `${index}`);
    }
    assert.ok(!cancelled.has(winner) && !putBack.has(winner));
  }),
  { runs: 200 },
);

checkProperty(
  "race: a source gets a request when the one before it is late or has failed, never before",
  fc.asyncProperty(fc.array(runner, { maxLength: 6 }), async (runners) => {
    const { askedAtMs } = await race(runners);
    for (const [index, atMs] of askedAtMs.entries()) {
      const before = askedAtMs[index - 1];
      if (before === undefined) continue;
      const { tookMs = 0, isGood = true } = runners[index - 1] ?? {};
      const dueAtMs = before + Math.min(HEDGE_AFTER_MS, isGood ? Infinity : tookMs);
      const begunAtMs = atMs - (runners[index]?.findMs ?? 0);
      assert.ok(begunAtMs >= dueAtMs && begunAtMs <= before + HEDGE_AFTER_MS);
    }
  }),
  { runs: 200 },
);

Deno.test("race: a source that answers while this process is paused is not late", async () => {
  using time = new PlayedTime();
  const answer = Promise.withResolvers<boolean>();
  const asked: string[] = [];
  const sources = ["one", "two"].map((upstream) => ({ upstream, location: "" }));
  const race = firstToAnswer({
    next: () => Promise.resolve(sources[asked.length]),
    ask(source) {
      asked.push(source.upstream);
      return { source, answered: answer.promise };
    },
    hedgeAfterMs: HEDGE_AFTER_MS,
  });
  await time.settled();
  time.standStill(10 * HEDGE_AFTER_MS);
  // Timers that are due run before the answer is read.
  await time.advance(0);
  answer.resolve(true);

  assert.equal((await race)?.source.upstream, "one");
  assert.deepEqual(asked, ["one"]);
});
