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

/** Settings, and the days without a request after which they remove metadata. */
const RETENTIONS = [
  [{}, 180],
  [{ "cache-metadata-retention": "40d" }, 40],
] as const;

for (const [flags, days] of RETENTIONS) {
  Deno.test(`serve: metadata without a request in ${days} days goes on schedule`, async () => {
    using folder = tempFolder();
    await using upstream = await fakeUpstream({ objects: [thing] });
    const path = `${folder.path}/db.sqlite`;
    {
      await using store = new SqliteMetadataStore(await openDatabase(path));
      const nowMs = Date.now();
      await store.apply([
        put(old, [young], nowMs - (days + 1) * DAY_MS),
        put(young, [], nowMs - (days - 1) * DAY_MS),
      ]);
    }
    await using larder = await startLarder({
      "cache-storage-local": folder.path,
      "cache-upstream-url": upstream.url,
      "cache-lru-schedule": "@every 1s",
      ...flags,
    });
    const { narinfos, nars } = await larder.logged("unused metadata removed");
    assert.deepEqual([narinfos, nars], [1, 0]);
    larder.kill("SIGTERM");
    await larder.ended;
    await using store = new SqliteMetadataStore(await openDatabase(path));
    assert.equal(await store.findNarinfo(old), undefined);
    assert.ok(await store.findNarinfo(young));
  });
}
