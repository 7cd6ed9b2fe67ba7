import assert from "node:assert/strict";
import { WorkerComparer } from "../../../src/app/workers/worker_comparer.ts";
import { tempFolder } from "../../support/temp_folder.ts";

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
