import assert from "node:assert/strict";
import { readMigrations } from "../../../src/metadata/migrations.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { hash, narOf } from "../../support/metadata_rows.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const [kept, empty] = [hash("kept"), hash("empty")];

Deno.test("migrations: NARs kept before the migration of uses can be evicted", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  const before = await openDatabase(path, readMigrations("sqlite").slice(0, 4));
  for (const [id, storePathHash] of [kept, empty].entries()) {
    const size = storePathHash === kept ? 100 : null;
    const { name, narHash } = narOf(storePathHash);
    before.prepare("INSERT INTO path VALUES (?, ?)").run(id + 1, storePathHash);
    before.prepare("INSERT INTO nar VALUES (?, ?, ?, 1, NULL, NULL, ?, ?, 1, 0)")
      .run(id + 1, name, narHash, size && narHash, size);
    before.prepare("INSERT INTO narinfo VALUES (?, ?, 'text', 1, NULL, NULL)").run(id + 1, id + 1);
    before.prepare("INSERT INTO narinfo_use VALUES (?, ?, 0)").run(id + 1, 10 - id);
  }
  before.close();

  await using store = new SqliteMetadataStore(await openDatabase(path));
  const order = { bytesMin: Infinity, entriesMax: 8, spared: new Set<never>(), owner: "we" };
  assert.deepEqual((await store.coldest(9)).map(({ storePathHash }) => storePathHash), [kept]);
  assert.deepEqual((await store.evict(order)).narinfos, [kept, empty]);
});
