import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { hash, put } from "../../support/metadata_rows.ts";
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

function pathsIn(database: DatabaseSync): ReadonlySet<unknown> {
  return new Set(database.prepare("SELECT hash FROM path").all().map(({ hash }) => hash));
}
