import assert from "node:assert/strict";
import { clock } from "../../../src/runtime/current.ts";
import { PlayedTime } from "../../support/played_time.ts";

const TIMES_MS = [0, 1, 10, 1_000, 3_333];

Deno.test("countdown: it is due after its time, once", async () => {
  for (const ms of TIMES_MS) {
    using time = new PlayedTime();
    const due: number[] = [];
    using _countdown = clock.countdown(ms, () => due.push(time.nowMs));
    await time.advance(ms - 1);
    assert.deepEqual(due, []);
    await time.advance(10_000);
    assert.deepEqual(due, [ms]);
  }
});

Deno.test("countdown: one that is disposed of is never due", async () => {
  using time = new PlayedTime();
  const due: number[] = [];
  {
    using _countdown = clock.countdown(100, () => due.push(time.nowMs));
    await time.advance(99);
  }
  await time.advance(10_000);
  assert.deepEqual(due, []);
});

Deno.test("countdown: a standstill of the thread counts as an eighth of the time", async () => {
  using time = new PlayedTime();
  let isDue = false;
  using _countdown = clock.countdown(800, () => void (isDue = true));
  time.standStill(60_000);
  await time.advance(699);
  assert.equal(isDue, false);
  await time.advance(1);
  assert.equal(isDue, true);
});
