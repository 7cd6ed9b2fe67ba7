import assert from "node:assert/strict";
import { DATABASE_AWAY, Failure } from "../../src/base/failure.ts";
import { Notifier } from "../../src/base/notifier.ts";
import { HotMetadataStore } from "../../src/metadata/hot_metadata_store.ts";
import type { MetadataStore, WriteOptions } from "../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { StoredPaths } from "../../src/metadata/stored_paths.ts";
import { parsePublicKey } from "../../src/nix/signature.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { TestCache } from "../support/test_cache.ts";
import { push, pushOf, uploadKey } from "../support/uploading.ts";

const objects = ["one", "two"].map((name) => makeStoreObject({ name }));
const [one, two] = objects as [StoreObject, StoreObject];

Deno.test("away database: own routes say 503 and why, and deny nothing", async () => {
  await using scene = await Scene.open();
  const { cache } = scene;
  await scene.pull(one);
  const narPath = await cache.narPath(one.storePathHash);
  await cache.downloadsOver();
  scene.absence.begin();

  const hash = two.storePathHash;
  const requests = [
    ["POST", `/pin/${hash}.narinfo`],
    ["DELETE", `/pin/${hash}.narinfo`],
    ["POST", `/pins/names?name=a&keep=1&root=${hash}`],
    ["DELETE", "/pins/names?name=a"],
    ["GET", "/pins"],
    ["GET", "/pins/closures"],
    ["GET", "/pins/names"],
    ["GET", `/explain?path=${hash}`],
    ["GET", "/explain?q=two"],
    ["DELETE", `/${hash}.narinfo`],
    ["DELETE", narPath],
    ["GET", `/upload/${hash}.narinfo`],
    ["GET", `/upload/nar/${"0".repeat(52)}.nar`],
  ] as const;
  const answers = [
    ...await Promise.all(requests.map(([method, path]) => cache.request(method, path))),
    await cache.post("/plan", `${hash}\n`),
    await cache.post("/gc?target=0&dry-run=true", ""),
    await cache.post("/gc?target=0", ""),
    await cache.post("/pins/verify", ""),
    await cache.put(`/upload/nar/${"0".repeat(52)}.nar`, "x"),
    await cache.put(`/upload/${hash}.narinfo`, await scene.narinfoOf(two)),
  ];
  for (const [at, answer] of answers.entries()) {
    const told = [answer.status, await answer.text(), answer.headers.get("retry-after")];
    assert.deepEqual(told, [503, `${DATABASE_AWAY}\n`, "5"], `${requests[at] ?? at}`);
  }
  // Each names what failed under its own id, beside the one line of the outage.
  for (const answer of answers) {
    const id = answer.headers.get("x-request-id");
    const own = cache.log.filter(({ request_id, level }) => request_id === id && level === "info");
    const causes = own.map(({ msg, part, error, reason }) => (
      msg === "upload refused" ? reason : `${part}: ${error}`
    ));
    assert.ok(
      causes.includes("database: Cannot use the database") || causes.includes(DATABASE_AWAY),
      `${id}: ${JSON.stringify(own)}`,
    );
  }
  const refused = cache.log.filter(({ msg }) => msg === "upload refused");
  assert.deepEqual(refused.map(({ reason }) => reason), [DATABASE_AWAY, DATABASE_AWAY]);
});

Deno.test("away database: a NAR whose row nobody can read comes from an upstream", async () => {
  await using scene = await Scene.open();
  const { cache } = scene;
  const path = await cache.narPath(one.storePathHash);
  // As at another member, or after many other paths.
  scene.hot.forgetChanged("all");
  scene.absence.begin();

  const head = await cache.head(path);
  assert.equal(head.status, 200);
  await scene.getNar(one, path);
  assert.equal((await cache.get(`/nar/${"0".repeat(52)}.nar.xz`)).status, 404);
  scene.absence.end();
  await scene.pull(one);
});

Deno.test("away database: a NAR whose row is in memory, and whose sources are not, comes", async () => {
  await using scene = await Scene.open();
  const { cache } = scene;
  const path = await cache.narPath(one.storePathHash);
  assert.equal((await cache.head(path)).status, 200);
  scene.absence.begin();

  assert.equal((await cache.head(path)).status, 200);
  await scene.getNar(one, path);
});

Deno.test("away database: a stored narinfo that nobody else has is no absent one", async () => {
  await using scene = await Scene.open();
  const { cache } = scene;
  const mine = makeStoreObject({ name: "mine" });
  const theirs = makeStoreObject({ name: "theirs" });
  assert.deepEqual(await push(cache, await pushOf(mine, { key: uploadKey })), [201, 201]);
  // Another member has one, too.
  scene.hot.forgetChanged({ storePaths: [theirs.storePathHash], nars: [] });
  scene.hot.forgetChanged("all");
  scene.absence.begin();

  for (const { storePathHash } of [mine, theirs]) {
    const path = `/${storePathHash}.narinfo`;
    const answer = await cache.get(path);
    const told = [answer.status, await answer.text(), answer.headers.get("retry-after")];
    assert.deepEqual(told, [503, `${DATABASE_AWAY}\n`, "5"]);
    assert.equal((await cache.head(path)).status, 503);
    const id = answer.headers.get("x-request-id");
    const own = cache.log.filter(({ request_id }) => request_id === id);
    assert.deepEqual(own.at(-1)?.["part"], "database");
    const why = "Cannot read a stored narinfo: Cannot use the database";
    assert.ok(own.every(({ error, level }) => error === why && level === "debug"), "no flood");
  }
  assert.equal((await cache.get(`/${"0".repeat(32)}.narinfo`)).status, 404);
  scene.absence.end();
  assert.equal((await cache.get(`/${mine.storePathHash}.narinfo`)).status, 200);
});

Deno.test("away database: a narinfo in memory stays one after an upstream lost a NAR", async () => {
  await using scene = await Scene.open();
  const { cache, upstream } = scene;
  const lost = await cache.narPath(two.storePathHash);
  assert.equal((await cache.get(`/${one.storePathHash}.narinfo`)).status, 200);
  upstream.breakNar((answer) => ({ ...answer, status: 404, body: new Uint8Array(0) }), two);
  assert.equal((await cache.get(lost)).status, 404);
  scene.absence.begin();

  await scene.pull(one);
  const answer = await cache.get(`/${two.storePathHash}.narinfo`);
  assert.equal(answer.status, 200, "its upstream says that it has it");
});

Deno.test("away database: an absence without the database is not remembered", async () => {
  await using scene = await Scene.open({ knowsStored: false });
  const { cache } = scene;
  const mine = makeStoreObject({ name: "mine" });
  assert.deepEqual(await push(cache, await pushOf(mine, { key: uploadKey })), [201, 201]);
  scene.hot.forgetChanged("all");
  scene.absence.begin();
  const path = `/${mine.storePathHash}.narinfo`;
  assert.equal((await cache.get(path)).status, 404);
  scene.absence.end();
  assert.equal((await cache.get(path)).status, 200);
});

Deno.test("away database: a narinfo and its NAR come from an upstream", async () => {
  await using scene = await Scene.open();
  scene.absence.begin();
  for (const object of objects) await scene.pull(object);
});

/** A database that does not answer while the test says so. */
class Absence {
  readonly #over = new Notifier();
  #isNow = false;

  get isNow(): boolean {
    return this.#isNow;
  }

  begin(): void {
    this.#isNow = true;
  }

  end(): void {
    this.#isNow = false;
    this.#over.notify();
  }

  async over(): Promise<void> {
    while (this.#isNow) await this.#over.notified();
  }

  /** Rejects everything as PostgreSQL's store does. */
  of(store: MetadataStore): MetadataStore {
    return new Proxy<MetadataStore>(store, {
      get: (target, key) => {
        const value = Reflect.get(target, key, target);
        if (typeof value !== "function") return value;
        return async (...args: unknown[]) => {
          if (key === "apply" && (args[1] as WriteOptions | undefined)?.mustWait) await this.over();
          if (this.#isNow) throw new Failure("away", "Cannot use the database");
          return await Reflect.apply(value, target, args);
        };
      },
    });
  }
}

/** A cache over a database that goes away. */
class Scene implements AsyncDisposable {
  readonly absence = new Absence();
  readonly #resources = new AsyncDisposableStack();

  private constructor(
    readonly cache: TestCache,
    readonly upstream: FakeUpstream,
    readonly hot: HotMetadataStore,
    { absence, resources }: {
      readonly absence: Absence;
      readonly resources: AsyncDisposableStack;
    },
  ) {
    this.absence = absence;
    this.#resources = resources;
  }

  static async open({ knowsStored = true } = {}): Promise<Scene> {
    await using opening = new AsyncDisposableStack();
    const folder = opening.use(tempFolder());
    const store = opening.use(
      new SqliteMetadataStore(await openDatabase(`${folder.path}/db.sqlite`)),
    );
    const upstream = opening.use(await fakeUpstream({ objects, stored: true }));
    const absence = new Absence();
    const log = createLogger("error", { write() {} });
    const storedPaths = knowsStored ? opening.use(new StoredPaths(store)) : undefined;
    const metadata = new HotMetadataStore(absence.of(store), log, storedPaths);
    const keys = [parsePublicKey(upstream.publicKey), uploadKey.publicKey];
    const uploads = { allowed: true, keys, requireSignature: true };
    const options = { upstreams: [upstream], metadata, storedPaths, allowDelete: true, uploads };
    const cache = opening.use(await TestCache.open(options));
    return new Scene(cache, upstream, metadata, { absence, resources: opening.move() });
  }

  async narinfoOf({ storePathHash }: StoreObject): Promise<string> {
    return await (await fetch(`${this.upstream.url}/${storePathHash}.narinfo`)).text();
  }

  /** Requests narinfo and NAR, which must be the upstream's. */
  async pull(object: StoreObject): Promise<void> {
    await this.getNar(object, await this.cache.narPath(object.storePathHash));
  }

  async getNar(object: StoreObject, path: string): Promise<void> {
    const answer = await this.cache.get(path);
    assert.equal(answer.status, 200);
    assert.deepEqual(await answer.bytes(), (await this.upstream.narFileOf(object)).bytes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.absence.end();
    await this.#resources.disposeAsync();
  }
}
