import assert from "node:assert/strict";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { hash, put } from "../support/metadata_rows.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const thing = makeStoreObject({ name: "thing" });
const [old, young] = [hash("old"), hash("young")];
const DAY_MS = 24 * 3_600_000;

Deno.test("serve: removes metadata on schedule by --cache-metadata-retention", async () => {
  using folder = tempFolder();
  await using upstream = await fakeUpstream({ objects: [thing] });
  const path = `${folder.path}/db.sqlite`;
  {
    await using store = new SqliteMetadataStore(await openDatabase(path));
    const nowMs = Date.now();
    await store.apply([
      put(old, [young], nowMs - 41 * DAY_MS),
      put(young, [], nowMs - 39 * DAY_MS),
    ]);
  }
  await using larder = await startLarder({
    "cache-storage-local": folder.path,
    "cache-upstream-url": upstream.url,
    "cache-metadata-retention": "40d",
    "cache-lru-schedule": "@every 1s",
  });
  const { narinfos, nars } = await larder.logged("unused metadata removed");
  assert.deepEqual([narinfos, nars], [1, 0]);
  larder.kill("SIGTERM");
  await larder.ended;
  await using store = new SqliteMetadataStore(await openDatabase(path));
  assert.equal(await store.findNarinfo(old), undefined);
  assert.ok(await store.findNarinfo(young));
});
