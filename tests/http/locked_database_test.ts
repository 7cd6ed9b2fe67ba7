import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { Bytes } from "../../src/base/bytes.ts";
import { HotMetadataStore } from "../../src/metadata/hot_metadata_store.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { TestCache } from "../support/test_cache.ts";

const objects = Array.from({ length: 20 }, (_, seed) => makeStoreObject({ name: "many", seed }));
const [first, second, third] = objects as [StoreObject, StoreObject, StoreObject];

Deno.test("locked database: new paths are served soon, narinfo and NAR", async () => {
  await using scene = await Scene.open();
  scene.lock();
  for (const object of [first, second]) {
    assert.deepEqual(await scene.pull(object), (await scene.upstream.narFileOf(object)).bytes);
  }
  assert.deepEqual(await scene.rows(), []);
  // Again, while the row is in memory.
  await scene.cache.narinfo(first.storePathHash);
});

Deno.test("locked database: a served narinfo is written when the lock is free", async () => {
  await using scene = await Scene.open();
  scene.lock();
  const told = await scene.cache.narinfo(first.storePathHash);
  const path = await scene.cache.narPath(first.storePathHash);
  scene.unlock();
  await eventually("it is written", async () => (await scene.rows()).length === 1);
  assert.equal(await scene.cache.narinfo(first.storePathHash), told);
  assert.equal((await scene.cache.get(path)).status, 200);
  await scene.cache.downloadsOver();
  assert.equal((await scene.cache.get(path)).headers.get("x-cache"), "HIT");
  const said = scene.log.filter(({ msg }) => /database/.test(msg)).map(({ level }) => level);
  assert.deepEqual(said, ["warn", "info"]);
});

Deno.test("locked database: a pin of a narinfo in memory alone holds in the end", async () => {
  await using scene = await Scene.open();
  scene.lock();
  await scene.cache.narinfo(first.storePathHash);
  const pinning = scene.cache.request("POST", `/pin/${first.storePathHash}.narinfo`);
  scene.unlock();
  assert.equal((await pinning).status, 200);
  assert.ok((await scene.metadata.findPin(first.storePathHash)) !== undefined);
  assert.equal((await scene.rows()).length, 1);
});

Deno.test("locked database: hits go on at their pace", async () => {
  await using scene = await Scene.open();
  await scene.pull(first);
  await scene.cache.downloadsOver();
  scene.lock();
  const waiting = scene.cache.narinfo(second.storePathHash);
  for (let count = 0; count < 20; count++) await scene.pull(first);
  await waiting;
});

Deno.test("locked database: rows in memory are written before the store closes", async () => {
  await using scene = await Scene.open();
  scene.lock();
  await scene.cache.narinfo(first.storePathHash);
  const closed = scene.metadata[Symbol.asyncDispose]();
  scene.unlock();
  await closed;
  using database = new DatabaseSync(scene.path);
  assert.equal(database.prepare("SELECT * FROM narinfo").all().length, 1);
});

Deno.test("full database: new paths are served soon, and written once they fit", async () => {
  await using scene = await Scene.open();
  scene.fill();
  for (const object of objects) {
    assert.deepEqual(await scene.pull(object), (await scene.upstream.narFileOf(object)).bytes);
  }
  assert.ok((await scene.rows()).length < objects.length, "it is not full");
  scene.relieve();
  await eventually("all are written", async () => {
    return (await scene.rows()).length === objects.length;
  });
  const said = scene.log.filter(({ msg }) => /database/.test(msg)).map(({ level }) => level);
  assert.deepEqual(said, ["warn", "info"]);
});

Deno.test("unreadable database: upstreams answer for it, and the log says it once", async () => {
  await using scene = await Scene.open(unreadable);
  for (const object of objects) {
    const narinfo = await scene.cache.get(`/${object.storePathHash}.narinfo`);
    assert.equal(narinfo.status, 200);
  }
  assert.equal((await scene.cache.get(`/${"0".repeat(32)}.narinfo`)).status, 404);
  assert.equal(scene.cache.logged("error").length, 1);
});

Deno.test("unreadable and locked database: the NAR comes all the same", async () => {
  await using scene = await Scene.open(unreadable);
  scene.lock();
  assert.deepEqual(await scene.pull(third), (await scene.upstream.narFileOf(third)).bytes);
});

/** As SQLite answers where another process has locked it even for reading. */
function unreadable(store: SqliteMetadataStore): MetadataStore {
  const locked = () =>
    Promise.reject(Object.assign(new Error("database is locked"), { errcode: 5 }));
  return new Proxy<MetadataStore>(store, {
    get(target, key) {
      if (["findNarinfo", "findNar", "sourcesOf", "narinfosOf"].includes(String(key))) {
        return locked;
      }
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A cache over a database file that another process can lock. */
class Scene implements AsyncDisposable {
  readonly log: { readonly level: string; readonly msg: string }[] = [];
  readonly #locker: DatabaseSync;
  #isLocked = false;

  private constructor(
    readonly path: string,
    readonly metadata: SqliteMetadataStore,
    readonly upstream: FakeUpstream,
    readonly resources: AsyncDisposableStack,
  ) {
    this.#locker = new DatabaseSync(path);
  }

  cache!: TestCache;
  connection!: DatabaseSync;

  static async open(
    wrapped: (store: SqliteMetadataStore) => MetadataStore = (store) => store,
  ): Promise<Scene> {
    const resources = new AsyncDisposableStack();
    const folder = resources.use(tempFolder());
    const path = `${folder.path}/db.sqlite`;
    const connection = await openDatabase(path);
    const metadata = resources.use(new SqliteMetadataStore(connection));
    const upstream = resources.use(await fakeUpstream({ objects, stored: true }));
    const scene = new Scene(path, metadata, upstream, resources);
    scene.connection = connection;
    const log = createLogger("info", { write: (line) => void scene.log.push(JSON.parse(line)) });
    const hot = new HotMetadataStore(wrapped(metadata), log);
    scene.cache = resources.use(await TestCache.open({ upstreams: [upstream], metadata: hot }));
    return scene;
  }

  /** From now on larder's file does not grow, as on a full disk. */
  fill(): void {
    const pages = this.connection.prepare("PRAGMA page_count").get()?.["page_count"];
    this.connection.exec(`PRAGMA max_page_count = ${pages}`);
  }

  relieve(): void {
    this.connection.exec("PRAGMA max_page_count = 1000000");
  }

  lock(): void {
    this.#locker.exec("BEGIN IMMEDIATE");
    this.#isLocked = true;
  }

  unlock(): void {
    this.#locker.exec("COMMIT");
    this.#isLocked = false;
  }

  /** Asks for narinfo and NAR. */
  async pull({ storePathHash }: StoreObject): Promise<Bytes> {
    const path = await this.cache.narPath(storePathHash);
    return await (await this.cache.get(path)).bytes();
  }

  /** The rows as another process reads them. */
  async rows(): Promise<readonly unknown[]> {
    return this.#locker.prepare("SELECT path_id FROM narinfo").all();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isLocked) this.unlock();
    await this.resources.disposeAsync();
    this.#locker.close();
  }
}
