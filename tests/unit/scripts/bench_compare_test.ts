import assert from "node:assert/strict";
import { compare, type Median, type Turn } from "../../../scripts/bench/compare.ts";

function turnOf(unit: Median["unit"], before: number, after: number): Turn {
  const of = (value: number) => [{ name: "figure", unit, value }];
  return [of(before), of(after)];
}

function isWorse(...turns: readonly Turn[]): boolean {
  return compare(["2.6.8", "newest"], turns).worse.includes("figure");
}

Deno.test("bench comparison: a lower rate, or more time or memory, is worse", () => {
  for (const unit of ["requests/s", "MB/s"] as const) {
    assert.deepEqual([80, 97, 120].map((after) => isWorse(turnOf(unit, 100, after))), [
      true,
      false,
      false,
    ]);
  }
  for (const unit of ["ms", "s", "MB"] as const) {
    assert.deepEqual([80, 104, 120].map((after) => isWorse(turnOf(unit, 100, after))), [
      false,
      false,
      true,
    ]);
  }
});

Deno.test("bench comparison: a figure in percent may grow by as many points", () => {
  assert.deepEqual([6, 8].map((after) => isWorse(turnOf("%", 2, after))), [false, true]);
});

Deno.test("bench comparison: the turn in the middle decides", () => {
  const [bad, good] = [turnOf("ms", 1, 9), turnOf("ms", 1, 1)];
  assert.deepEqual([isWorse(bad, good, good), isWorse(bad, bad, good)], [false, true]);
});

Deno.test("bench comparison: a figure that one of them lacks is worse", () => {
  assert.ok(isWorse([[{ name: "figure", unit: "ms", value: 1 }], []]));
});
