import assert from "node:assert/strict";
import { WaitNotes } from "../../../src/base/wait_notes.ts";

Deno.test("wait notes: the sum is exact, the place is near, and few are remembered", () => {
  const notes = new WaitNotes();
  let atMs = 1_000;
  let sumMs = 0;
  for (let count = 0; count < 50_000; count++) {
    const ms = count % 7;
    notes.add(atMs, atMs + ms);
    sumMs += ms;
    atMs += ms + count % 11;
  }
  const { stretches } = notes;
  assert.ok(stretches.length <= 64 && stretches.length > 16, `${stretches.length}`);
  assert.equal(stretches.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0), sumMs);
  let lastMs = 0;
  for (const { fromMs, toMs } of stretches) {
    assert.ok(fromMs >= lastMs, "disjoint, and in order");
    lastMs = toMs;
  }
  assert.ok(lastMs <= atMs);
});
