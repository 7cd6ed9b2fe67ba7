import { SizeLimit, SpaceBudget } from "../../../src/space/size_limit.ts";
import assert from "node:assert/strict";

Deno.test("budget: reservations take what is granted to the last byte, and not one more", () => {
  const budget = new SpaceBudget(SizeLimit.of(1_000));
  budget.grant(100);
  assert.equal(budget.take(101), undefined);
  using one = budget.take(60);
  assert.ok(one);
  assert.equal(one.grow(41), false);
  assert.equal(one.grow(40), true);
  assert.equal(budget.take(1), undefined);
  assert.deepEqual([one.bytes, budget.ownReservedBytes], [100, 100]);
});

Deno.test("budget: a kept file's bytes leave the grant, a dropped one's come back to it", () => {
  const budget = new SpaceBudget(SizeLimit.of(1_000));
  budget.grant(100);
  const kept = budget.take(70);
  kept?.kept();
  kept?.[Symbol.dispose]();
  assert.deepEqual([budget.grantedBytes, budget.keptBytes, budget.ownReservedBytes], [30, 70, 0]);
  budget.take(30)?.[Symbol.dispose]();
  using again = budget.take(30);
  assert.equal(again?.ledgerBytes, 30);
});

Deno.test("budget: the bytes of all members count, and what is free is the rest", () => {
  const budget = new SpaceBudget(SizeLimit.of(1_000));
  budget.grant(100);
  using _own = budget.take(60);
  budget.observe({
    ...{ usedBytes: 500, pendingBytes: 0, pinnedBytes: 0, othersBytes: 200 },
    database: { bytes: 0, countedBytes: 0 },
  });
  assert.deepEqual([budget.reservedBytes, budget.freeBytes], [260, 240]);
});
