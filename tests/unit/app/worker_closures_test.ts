import assert from "node:assert/strict";
import { WorkerClosures } from "../../../src/app/workers/worker_closures.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { PinnedClosures } from "../../../src/pins/pinned_closures.ts";
import { changesOf, hashOfNode } from "../../support/stored_graph.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("WorkerClosures: counts the same closures as the code on this thread", async () => {
  await using scene = await openScene(2_000);
  using closures = new WorkerClosures(scene);
  const [counted, joined] = await Promise.all([closures.list(), closures.list()]);
  assert.equal(counted.length, 3);
  assert.equal(joined, counted);
  using here = new PinnedClosures(scene);
  assert.deepEqual(counted, await here.list());
  await scene.metadata.apply([{ kind: "remove-pin", storePathHash: hashOfNode(1) }]);
  assert.equal((await closures.list()).length, 2);
});

Deno.test("WorkerClosures: a database that cannot be opened is a rejection", async () => {
  await using scene = await openScene(2);
  using closures = new WorkerClosures({ ...scene, databasePath: `${scene.databasePath}.gone` });
  await assert.rejects(closures.list(), /Cannot count closures: .*unable to open/);
});

Deno.test("WorkerClosures: a count is rejected when the server stops", async () => {
  await using scene = await openScene(2_000);
  const closures = new WorkerClosures(scene);
  const counting = closures.list();
  const rejected = assert.rejects(counting, /the server is stopping/);
  closures[Symbol.dispose]();
  await rejected;
});

/** A chain of `length` paths with three pins, in a file. */
async function openScene(length: number) {
  const folder = tempFolder();
  const databasePath = `${folder.path}/db.sqlite`;
  const metadata = new SqliteMetadataStore(await openDatabase(databasePath));
  const nodes = Array.from({ length }, (_, node) => ({
    references: node + 1 < length ? [node, node + 1] : [],
    nar: node,
  }));
  await metadata.apply([
    ...changesOf(nodes),
    ...[0, 1, length - 1].slice(0, length).map((node) => (
      { kind: "put-pin", pin: { storePathHash: hashOfNode(node), pinnedAtMs: node } } as const
    )),
  ]);
  return {
    metadata,
    databasePath,
    async [Symbol.asyncDispose]() {
      await metadata[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}
