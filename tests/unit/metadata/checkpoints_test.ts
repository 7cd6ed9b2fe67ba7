import assert from "node:assert/strict";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { eventually } from "../../support/eventually.ts";
import { hash, put } from "../../support/metadata_rows.ts";
import { tempFolder } from "../../support/temp_folder.ts";

/** So many rows that a checkpoint is due, and too few for SQLite to do one by itself. */
const PATHS = 2_000;

Deno.test("SqliteMetadataStore: the log is copied into the file while it is open", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  const database = await openDatabase(path);
  await using store = new SqliteMetadataStore(database);
  const before = Deno.statSync(path).size;
  const version = () => database.prepare("PRAGMA data_version").get()?.["data_version"];
  const versionBefore = version();

  await write(store);

  const grown = () => Deno.statSync(path).size > before + PATHS * 500;
  await eventually("the file has the rows", grown);
  // The feed of others' changes compares it: a checkpoint changes no row.
  assert.equal(version(), versionBefore);
  let more = 0;
  await eventually("a write goes into a log that begins anew", async () => {
    const logBytes = Deno.statSync(`${path}-wal`).size;
    await store.apply([put(hash(`one more: ${more++}`), [])]);
    return Deno.statSync(`${path}-wal`).size === logBytes;
  });
});

Deno.test("SqliteMetadataStore: closed during a checkpoint it keeps everything", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  {
    await using store = await open(path);
    await write(store);
  }
  await using store = await open(path);
  for (let at = 0; at < PATHS; at += 100) assert.ok(await store.findNarinfo(hash(`path ${at}`)));
});

async function open(path: string): Promise<SqliteMetadataStore> {
  return new SqliteMetadataStore(await openDatabase(path));
}

async function write(store: SqliteMetadataStore): Promise<void> {
  await store.apply(Array.from({ length: PATHS }, (_, at) => put(hash(`path ${at}`), [])));
}
