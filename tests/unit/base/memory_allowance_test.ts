import assert from "node:assert/strict";
import { MemoryAllowance } from "../../../src/base/memory_allowance.ts";
import { PlayedTime } from "../../support/played_time.ts";

Deno.test("MemoryAllowance: a share comes back when its scope and every hold are over", () => {
  const allowance = new MemoryAllowance(100);
  const other = allowance.share();
  const share = allowance.share();
  assert.deepEqual([share.take(80), share.take(30), other.take(30)], [true, false, false]);

  const writing = share.hold();
  share[Symbol.dispose]();
  assert.equal(other.take(30), false, "it is still being written");

  writing[Symbol.dispose]();
  writing[Symbol.dispose]();
  assert.deepEqual([other.take(100), other.take(1)], [true, false]);
});

Deno.test("MemoryAllowance: a wait ends with the returned bytes, or in time", async () => {
  const allowance = new MemoryAllowance(100);
  const first = allowance.share();
  first.take(60);
  const second = allowance.share();
  assert.equal(await second.takeWithin(50, 20), false);
  const waiting = second.takeWithin(50, 60_000);
  first[Symbol.dispose]();
  assert.equal(await waiting, true);
  assert.deepEqual([second.take(51), second.take(50)], [false, true]);
});

Deno.test("MemoryAllowance: who waits has the share given up that grows longest", async () => {
  using time = new PlayedTime();
  const allowance = new MemoryAllowance(100);
  const begin = (bytes: number) => {
    const share = allowance.share();
    assert.ok(share.take(bytes));
    return { share, growing: share.growing(() => share[Symbol.dispose]()) };
  };
  const [whole, slow] = [begin(40), begin(40)];
  whole.growing[Symbol.dispose]();
  await time.advance(3_000);
  const later = begin(20);

  const early = allowance.share().takeWithin(30, 1_500);
  await time.advance(1_500);
  assert.equal(await early, false, "none grows for long");

  const share = allowance.share();
  const waiting = share.takeWithin(30, 5_000);
  await time.advance(999);
  assert.equal(share.take(1), false, "it may still come whole");
  await time.advance(1);
  assert.equal(await waiting, true);
  assert.deepEqual([share.take(11), share.take(10)], [false, true], "the others stay");
  for (const one of [whole, slow, later]) one.share[Symbol.dispose]();
});
