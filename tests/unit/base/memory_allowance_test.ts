import assert from "node:assert/strict";
import { MemoryAllowance } from "../../../src/base/memory_allowance.ts";

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
