import assert from "node:assert/strict";
import process from "node:process";
import { lruOf } from "../../../src/base/lru.ts";

const MIB = 1 << 20;

Deno.test("lruOf: beyond its count it drops the entry that was used longest ago", () => {
  const entries = lruOf<string, number>({ countMax: 2 });
  entries.set("a", 1).set("b", 2);
  assert.equal(entries.get("a"), 1);
  entries.set("c", 3);
  assert.deepEqual([entries.get("a"), entries.get("b"), entries.get("c")], [1, undefined, 3]);
  assert.equal(entries.size, 2);
});

Deno.test("lruOf: without entries it takes next to no memory", () => {
  const before = process.memoryUsage().rss;
  const all = Array.from({ length: 100 }, () => lruOf<string, true>({ countMax: 100_000 }));
  assert.ok(process.memoryUsage().rss - before < 50 * MIB);
  assert.equal(all.length, 100);
});
