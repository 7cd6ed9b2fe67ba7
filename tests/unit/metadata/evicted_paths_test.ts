import assert from "node:assert/strict";
import { EVICTED_PATHS_MAX } from "../../../src/metadata/space_keeper.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { fileOf, hash, keep, put } from "../../support/metadata_rows.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("evict() remembers the newest evictions, and a bounded number of them", async () => {
  using folder = tempFolder();
  const database = await openDatabase(`${folder.path}/db.sqlite`);
  await using store = new SqliteMetadataStore(database);
  const [oldest, newest] = [hash("oldest"), hash("newest")];
  const note = database.prepare("INSERT INTO evicted_path (hash, at_ms) VALUES (?, 1)");
  note.run(oldest);
  database.exec("BEGIN");
  for (let count = 1; count < EVICTED_PATHS_MAX; count++) note.run(hash("between"));
  database.exec("COMMIT");
  assert.deepEqual(await store.pathTimes(oldest), { evictedAtMs: 1 });

  const stored = put(newest, []);
  await store.apply([stored, ...keep(fileOf(stored.nar.name))]);
  const order = { bytesMin: Infinity, entriesMax: 8, spared: new Set<never>(), owner: "we" };
  await store.evict({ ...order, atMs: 2 });
  assert.deepEqual(await store.pathTimes(oldest), {});
  assert.deepEqual(await store.pathTimes(newest), { evictedAtMs: 2 });
  const { rows } = database.prepare("SELECT count(*) AS rows FROM evicted_path").get() ?? {};
  assert.equal(rows, EVICTED_PATHS_MAX);
});
