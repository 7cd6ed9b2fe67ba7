import assert from "node:assert/strict";
import { HotMetadataStore } from "../../src/metadata/hot_metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "shared-1.0", size: 200_000 });
const SILENT = createLogger("error", { write() {} });

Deno.test("members: what another one evicted is fetched again, and is no damage", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using storage = new Storage();
  await using one = await storage.member(upstream);
  const path = await one.cache.narPath(object.storePathHash);
  const bytes = await (await one.cache.get(path)).bytes();
  await one.cache.downloadsOver();
  await (await one.cache.get(path)).bytes();
  await using other = await storage.member(upstream);
  await other.evictAll();

  const answer = await one.cache.get(path);

  assert.equal(answer.headers.get("x-cache"), "MISS");
  assert.deepEqual(await answer.bytes(), bytes);
  await one.cache.downloadsOver();
  assert.deepEqual(one.cache.logged("error"), []);
});

Deno.test("members: what another one put in its place is served, and is no damage", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using storage = new Storage();
  await using one = await storage.member(upstream);
  const path = await one.cache.narPath(object.storePathHash);
  const bytes = await (await one.cache.get(path)).bytes();
  await one.cache.downloadsOver();
  await (await one.cache.get(path)).bytes();
  await using other = await storage.member(upstream);
  await other.evictAll();
  await (await other.cache.get(await other.cache.narPath(object.storePathHash))).bytes();
  await other.cache.downloadsOver();
  await upstream.stop();

  const answer = await one.cache.get(path);

  assert.equal(answer.headers.get("x-cache"), "HIT");
  assert.deepEqual(await answer.bytes(), bytes);
  assert.deepEqual(one.cache.logged("error"), []);
});

Deno.test("members: two that publish one NAR at once leave one object and one row", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using storage = new Storage();
  await using one = await storage.member(upstream);
  await using other = await storage.member(upstream);
  const path = await one.cache.narPath(object.storePathHash);
  await other.cache.narPath(object.storePathHash);
  const both = Promise.withResolvers<void>();
  let asked = 0;
  upstream.onRequest = async ({ path }) => {
    if (!path.startsWith("/nar/")) return undefined;
    if (++asked === 2) both.resolve();
    await both.promise;
    return undefined;
  };

  const right = (await upstream.narFileOf(object)).bytes;
  await Promise.all([one, other].map(async ({ cache }) => {
    assert.deepEqual(await (await cache.get(path)).bytes(), right);
    await cache.downloadsOver();
  }));

  assert.equal(asked, 2);
  await eventually(
    "the loser's object is gone",
    async () => (await storage.objects()).length === 1,
  );
  const [kept, ...more] = await other.metadata.keptNars("");
  assert.deepEqual([kept?.at, more], [(await storage.objects())[0], []]);
  assert.deepEqual(await other.metadata.pendingFiles(), []);
  assert.equal((await other.metadata.stock()).keptBytes, right.length);
});

/** One folder and one database, for any number of members. */
class Storage implements AsyncDisposable {
  readonly #folder = tempFolder();
  readonly #databases = new AsyncDisposableStack();
  readonly nars = new LocalNarStore(`${this.#folder.path}/nar`);

  async member(upstream: FakeUpstream): Promise<Member> {
    const connection = await openDatabase(`${this.#folder.path}/db.sqlite`);
    const database = this.#databases.use(new SqliteMetadataStore(connection));
    const metadata = new HotMetadataStore(database, SILENT);
    const space = { limitBytes: Infinity, owner: crypto.randomUUID(), foreignBytes: () => 0 };
    const { nars } = this;
    const cache = await TestCache.open({ upstreams: [upstream], metadata, nars, space });
    return new Member(cache, metadata);
  }

  async objects(): Promise<readonly string[]> {
    return await Array.fromAsync(this.nars.list(""), ({ at }) => at);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#databases.disposeAsync();
    this.#folder[Symbol.dispose]();
  }
}

/** A larder of several on one storage, with rows in memory. */
class Member implements AsyncDisposable {
  constructor(readonly cache: TestCache, readonly metadata: HotMetadataStore) {}

  async evictAll(): Promise<void> {
    const watcher = { progress: () => undefined, isWanted: () => true };
    await this.cache.space.collect({ targetBytes: 0, dryRun: false }, watcher);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cache[Symbol.asyncDispose]();
  }
}
