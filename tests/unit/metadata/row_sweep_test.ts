import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { readMigrations } from "../../../src/metadata/migrations.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { hash, narOf, put } from "../../support/metadata_rows.ts";
import { sweepAll } from "../../support/swept_rows.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const [a, b, c, d] = [hash("a"), hash("b"), hash("c"), hash("d")];

Deno.test("sweepRows: a store path goes when no narinfo, reference or pin names it", async () => {
  const database = await openDatabase(":memory:");
  await using store = new SqliteMetadataStore(database);
  await store.apply([put(a, [b, c], 1), put(d, [c], 9)]);
  await store.apply([{ kind: "put-pin", pin: { storePathHash: hash("pinned"), pinnedAtMs: 1 } }]);
  await sweepAll(store, 8);
  assert.deepEqual(pathsIn(database), new Set([c, d, hash("pinned")]));
  await sweepAll(store, 9);
  assert.deepEqual(pathsIn(database), new Set([hash("pinned")]));
});

Deno.test("sweepRows: of two thousand store paths without a name none stays", async () => {
  const database = await openDatabase(":memory:");
  await using store = new SqliteMetadataStore(database);
  const leaves = Array.from({ length: 2_000 }, (_, index) => hash(`leaf ${index}`));
  await store.apply([put(a, leaves, 1)]);
  await store.apply([{ kind: "remove-narinfo", storePathHash: a }]);
  await sweepAll(store, 0);
  assert.equal(pathsIn(database).size, 0);
});

Deno.test("sweepRows: free pages are used again, so that the file stops growing", async () => {
  using folder = tempFolder();
  const database = await openDatabase(`${folder.path}/db.sqlite`);
  await using store = new SqliteMetadataStore(database);
  const pages = () => Number(database.prepare("PRAGMA page_count").get()?.["page_count"]);
  const round = async (name: string, atMs: number) => {
    const paths = Array.from({ length: 300 }, (_, index) => hash(`${name} ${index}`));
    await store.apply(paths.map((path) => put(path, paths.slice(0, 6), atMs)));
  };
  await round("first", 0);
  const first = pages();
  for (let number = 1; number < 6; number++) {
    const atMs = number * 1e9;
    await sweepAll(store, atMs - 1);
    await sweepAll(store, atMs - 1 + 0.5e9);
    await round(`round ${number}`, atMs);
  }
  assert.ok(pages() < 1.5 * first, `${pages()} pages, ${first} at first`);
});

Deno.test("migrations: a NAR that no narinfo names counts as used by the migration", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  const before = await openDatabase(path, readMigrations("sqlite").slice(0, 6));
  for (const [id, seed] of ["named", "loose", "left over"].entries()) {
    const size = seed === "loose" ? 100 : null;
    const { name, narHash } = narOf(seed);
    before.prepare("INSERT INTO nar VALUES (?, ?, ?, 1, NULL, NULL, ?, ?, 1, 0, '', NULL)")
      .run(id + 1, name, narHash, size && narHash, size);
  }
  before.prepare("INSERT INTO path VALUES (1, ?)").run(a);
  before.exec("INSERT INTO narinfo VALUES (1, 1, 'text', 1, NULL, NULL)");
  before.exec("INSERT INTO narinfo_use VALUES (1, 1, 0, 0)");
  before.exec("INSERT INTO loose_nar VALUES (2, 5)");
  before.close();

  const startedAtMs = Date.now() - 1_000;
  await using store = new SqliteMetadataStore(await openDatabase(path));
  assert.deepEqual((await store.coldest(9)).map(({ narName, usedAtMs }) => [narName, usedAtMs]), [
    [narOf("loose").name, 5],
  ]);
  assert.deepEqual(await sweepAll(store, startedAtMs), { narinfos: [a], nars: [] });
  assert.deepEqual((await sweepAll(store, startedAtMs + 2e9)).nars, [
    narOf("left over").name,
    narOf("named").name,
  ]);
  assert.ok((await store.findNar(narOf("loose").name))?.kept);
});

function pathsIn(database: DatabaseSync): ReadonlySet<unknown> {
  return new Set(database.prepare("SELECT hash FROM path").all().map(({ hash }) => hash));
}
