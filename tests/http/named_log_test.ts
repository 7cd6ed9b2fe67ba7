import assert from "node:assert/strict";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "firefox-130.0", size: 200_000 });

/** Waits for the lines of a miss, each of which has to have the name. */
async function namedLines(cache: TestCache, path: string): Promise<void> {
  const lines = () => cache.log.filter(({ nar }) => nar === path.slice("/nar/".length));
  const told = () => lines().map(({ msg }) => msg).sort();
  const messages = ["downloading nar from upstream", "nar cached successfully", "request"];
  await eventually("all is logged", () => told().length === messages.length);
  assert.deepEqual(told(), messages);
  assert.deepEqual(lines().map(({ name }) => name), messages.map(() => "firefox-130.0"));
}

Deno.test("log: each line about a NAR has the name of its store path", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(object.storePathHash);
  await (await cache.get(path)).bytes();
  await cache.downloadsOver();

  await namedLines(cache, path);

  await cache.request("POST", `/pin/${object.storePathHash}.narinfo`);
  const pinned = () => cache.log.find(({ method }) => method === "POST");
  await eventually("the pin is logged", () => pinned() !== undefined);
  assert.equal(pinned()?.name, "firefox-130.0");
});

Deno.test("log: a client that knows the narinfo already gets a name after a restart", async () => {
  using folder = tempFolder();
  const database = `${folder.path}/db.sqlite`;
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  let path = "";
  {
    await using metadata = new SqliteMetadataStore(await openDatabase(database));
    await using cache = await TestCache.open({ upstreams: [upstream], metadata });
    path = await cache.narPath(object.storePathHash);
  }
  await using metadata = new SqliteMetadataStore(await openDatabase(database));
  await using cache = await TestCache.open({ upstreams: [upstream], metadata });
  await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  await namedLines(cache, path);
});
