import assert from "node:assert/strict";
import { type GcEvent, gcEvents } from "../../../src/space/gc_event.ts";
import { StockedSpace } from "../../support/stocked_space.ts";

/** Several batches of eviction. */
const PATHS = 100;

Deno.test("gc: a run reports its progress, and at last its result", async () => {
  await using stocked = await stockedWith(PATHS);
  const order = { targetBytes: 1_000, dryRun: false };
  const events: GcEvent[] = [];
  for await (const event of gcEvents(stocked.space, order) ?? []) events.push(event);

  assert.ok(events.length > 2);
  assert.deepEqual(
    events.slice(0, -1).map(({ event }) => event),
    Array(events.length - 1).fill("progress"),
  );
  const done = events.at(-1);
  assert.ok(done?.event === "done" && done.reached);
  assert.equal(done.evictedFiles, 90);
  assert.equal(stocked.files.size, 10);
});

Deno.test("gc: a client that stops listening ends the run, with nothing half done", async () => {
  await using stocked = await stockedWith(PATHS);
  for await (const _ of gcEvents(stocked.space, { targetBytes: 0, dryRun: false }) ?? []) break;
  await stocked.space[Symbol.asyncDispose]();

  assert.ok(stocked.files.size > 0 && stocked.files.size < PATHS);
  assert.equal(stocked.space.budget.usedBytes, stocked.files.size * 100);
  assert.deepEqual(await stocked.metadata.pendingFiles(), []);
});

Deno.test("gc: without a limit and a target there is nothing to do", async () => {
  await using stocked = await StockedSpace.open(Infinity);
  assert.equal(gcEvents(stocked.space, { dryRun: false }), undefined);
});

async function stockedWith(count: number): Promise<StockedSpace> {
  const stocked = await StockedSpace.open(Infinity);
  for (let index = 0; index < count; index++) await stocked.store(`path ${index}`, 100);
  return stocked;
}
