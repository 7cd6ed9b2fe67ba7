import assert from "node:assert/strict";
import { MemoryAllowance } from "../../../src/cache/documents/memory_allowance.ts";

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
