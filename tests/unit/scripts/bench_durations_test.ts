import assert from "node:assert/strict";
import { Durations } from "../../../scripts/bench/durations.ts";

Deno.test("a whole bench within ten minutes says so, and a part of it has no limit", async () => {
  const { durations, takes } = clocked();
  await takes("narinfo hits", 600);
  assert.equal(durations.line({ isWhole: true }), "The bench took 600 s (≤ 600: reached).");
  await takes("narinfo hits", 1);
  assert.equal(durations.line({ isWhole: false }), "The bench took 601 s.");
});

Deno.test("a whole bench of over ten minutes names its longest parts, longest first", async () => {
  const { durations, takes } = clocked();
  for (const [name, tookS] of [["start", 100], ["eviction", 350], ["start", 300]] as const) {
    await takes(name, tookS);
  }
  assert.equal(
    durations.line({ isWhole: true }),
    "The bench took 750 s (≤ 600: MISSED; the longest: start 400 s; eviction 350 s).",
  );
});

/** Durations by a clock that a part moves. */
function clocked() {
  let nowMs = 0;
  const durations = new Durations(() => nowMs);
  const takes = (name: string, tookS: number) =>
    durations.part(name, () => {
      nowMs += tookS * 1_000;
      return Promise.resolve();
    });
  return { durations, takes };
}
