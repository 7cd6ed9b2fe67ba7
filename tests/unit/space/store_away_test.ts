import assert from "node:assert/strict";
import { Failure } from "../../../src/base/failure.ts";
import { hash } from "../../support/metadata_rows.ts";
import { StockedSpace } from "../../support/stocked_space.ts";

const WATCHER = { progress: () => undefined, isWanted: () => true };
const STORAGE_FACTS = { part: "storage" };
const SEEDS = ["a", "b", "c", "d", "e"];

Deno.test("space: while the store is away runs evict no further entries", async () => {
  await using stocked = await StockedSpace.open(10_000);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  const rows = async () => {
    const found = await Promise.all(SEEDS.map((seed) => stocked.metadata.findNarinfo(hash(seed))));
    return found.filter((row) => row !== undefined).length;
  };
  const run = () => stocked.space.collect({ targetBytes: 800, dryRun: false }, WATCHER);
  stocked.broken = new Failure("unavailable", "Cannot remove NAR file: the store is away");
  for (let times = 0; times < 3; times++) {
    await assert.rejects(async () => await run(), { kind: "unavailable", facts: STORAGE_FACTS });
  }
  assert.equal(await rows(), SEEDS.length - 1, "the file that the first run had to try");
  stocked.broken = false;
  await run();
  assert.equal(stocked.space.budget.usedBytes, 800);
  assert.equal(await rows(), SEEDS.length - 1);
});

Deno.test("space: a run evicts nothing from a store that is known to be silent, and fails", async () => {
  await using stocked = await StockedSpace.open(1_000);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  const run = () => stocked.space.collect({ targetBytes: 800, dryRun: false }, WATCHER);
  stocked.silent = true;
  const lost = { kind: "unavailable", facts: STORAGE_FACTS };
  for (let times = 0; times < 2; times++) await assert.rejects(async () => await run(), lost);
  stocked.space.tidy();
  await stocked.runsOver();
  assert.deepEqual(await stocked.stored(SEEDS), SEEDS);
  assert.deepEqual(stocked.logged("error"), [], "the outage of the store has its line");

  stocked.silent = false;
  assert.equal((await run())?.reached, true);
  assert.equal((await stocked.stored(SEEDS)).length, 4);
});

Deno.test("space: a full disk has nothing evicted from a store on another machine", async () => {
  await using stocked = await StockedSpace.open(10_000, undefined, 1);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  stocked.space.diskFull();
  await stocked.runsOver();
  assert.deepEqual(await stocked.stored(SEEDS), SEEDS);
});
