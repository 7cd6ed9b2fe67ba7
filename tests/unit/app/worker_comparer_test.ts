import assert from "node:assert/strict";
import { openBackEnds } from "../../../src/app/back_ends/back_ends.ts";
import { WorkerComparer } from "../../../src/app/workers/worker_comparer.ts";
import { StoreComparer } from "../../../src/cache/reconcile/compare_shard.ts";
import { fileOf, hash, keep, narOf, put } from "../../support/metadata_rows.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("WorkerComparer: finds the same files as the code on this thread", async () => {
  using folder = tempFolder();
  const places = placesIn(folder.path);
  await using stores = await openBackEnds(places);
  using comparer = new WorkerComparer(places);
  const [lost, stray] = [fileOf(narOf(hash("lost")).name), fileOf(narOf("stray").name)];
  await stores.metadata.apply([put(hash("lost"), []), ...keep(lost)]);
  Deno.writeTextFileSync(`${folder.path}/new`, "0123456789");
  await stores.nars.put(stray.at, `${folder.path}/new`);

  const here = new StoreComparer(stores);
  for (const { at } of [lost, stray]) {
    const shard = at.slice(0, 2);
    const found = await comparer.compare(shard, true);
    assert.deepEqual(found, await here.compare(shard, true));
    assert.deepEqual([...found.lost, ...found.stray], [at]);
  }
});

Deno.test("WorkerComparer: an unreadable store is a rejection, not lost files", async () => {
  using folder = tempFolder();
  using comparer = new WorkerComparer(placesIn(folder.path));
  await assert.rejects(comparer.compare("00", false), /Cannot compare shard 00/);
});

function placesIn(folder: string) {
  return {
    database: { kind: "sqlite", path: `${folder}/db.sqlite` },
    nars: { kind: "local", folder: `${folder}/nar` },
  } as const;
}
