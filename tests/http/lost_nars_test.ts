import assert from "node:assert/strict";
import { type Around, around } from "../../src/base/around.ts";
import { Failure } from "../../src/base/failure.ts";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { HotNarStore } from "../../src/storage/hot_nar_store.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { testWhere } from "../support/program.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { NARS_ELSEWHERE } from "../support/shared_servers.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { TestCache, type TestCacheOptions } from "../support/test_cache.ts";
import { ALLOWED, push, pushOf, WRITE_TOKEN } from "../support/uploading.ts";

const HOUR_MS = 3_600_000;
const object = makeStoreObject({ name: "thing-1.0" });
const objects = Array.from({ length: 5 }, (_, seed) => makeStoreObject({ name: "many", seed }));
const narinfoOf = (of: StoreObject) => `/${of.storePathHash}.narinfo`;
const PATH = narinfoOf(object);
const absent = ({ path }: { readonly path: string }) =>
  path.includes("nix-cache-info") ? undefined : new Response(null, { status: 404 });
const failing = () => new Response(null, { status: 500 });

type Loss = (scene: Scene) => void | Promise<void>;

/** Ways to lose the stored file, as far as larder finds out by a NAR request or a repair. */
const LOSSES: Readonly<Record<string, Loss>> = {
  "a removed": ({ file }) => Deno.removeSync(file),
  "a cut": ({ file }) => Deno.truncateSync(file, 5),
  "a changed": ({ file }) => Deno.writeFileSync(file, new Uint8Array(Deno.statSync(file).size)),
  "a given up": async ({ file, cache }) => {
    Deno.removeSync(file);
    const [kept] = await cache.metadata.keptNars("");
    assert.ok(kept);
    await cache.metadata.apply([{ kind: "nar-marked", at: kept.at, owner: "test", isLost: true }]);
  },
};

for (const [what, lose] of Object.entries(LOSSES)) {
  lostTest(`lost nar: ${what} file that no upstream has any more is 404, narinfo too`, async () => {
    await using scene = await Scene.open();
    await lose(scene);
    scene.upstream.onRequest = absent;

    assert.equal(await scene.status(scene.narPath), 404);
    assert.equal(await scene.status(PATH), 404);
    assert.equal(await scene.status(PATH, "HEAD"), 404);
    const { verdict, nar, reasons } = await scene.explain();
    assert.deepEqual([verdict, nar.is_stored], ["nar_not_stored", false]);
    assert.match(reasons.join(" "), /missing or damaged|was lost, and no upstream/);
    assert.equal(scene.upstream.count(PATH), 2, "it was asked again, once");
  });

  lostTest(`lost nar: ${what} file that an upstream has is here again`, async () => {
    await using scene = await Scene.open();
    await lose(scene);
    scene.upstream.onRequest = absent;
    assert.equal(await scene.status(scene.narPath), 404);
    scene.upstream.onRequest = undefined;

    assert.equal(await scene.cache.narPath(object.storePathHash), scene.narPath);
    await scene.readWhole();
    await scene.cache.downloadsOver();
    assert.equal((await scene.cache.get(PATH)).headers.get("x-cache"), "HIT");
  });

  lostTest(
    `lost nar: ${what} file that was only pushed is 404, and may be pushed again`,
    async () => {
      await using scene = await Scene.open({ uploads: ALLOWED, tokens: [WRITE_TOKEN] }, true);
      await lose(scene);
      assert.equal(await scene.status(scene.narPath), 404);
      assert.equal(await scene.status(PATH), 404);
      assert.equal(await scene.status(`/upload${PATH}`), 404);

      const statuses = await push(scene.cache, await pushOf(object));
      assert.deepEqual(statuses, [201, 200], "the narinfo is still the same");
      await scene.readWhole();
      assert.equal(await scene.status(PATH), 200);
    },
  );
}

for (const what of ["a cut", "a changed"]) {
  lostTest(`lost nar: ${what} file goes with its row, so the next process knows it`, async () => {
    await using scene = await Scene.open();
    const { file } = scene;
    await LOSSES[what]?.(scene);
    scene.upstream.onRequest = absent;
    assert.equal(await scene.status(scene.narPath), 404);

    assert.deepEqual(await scene.cache.metadata.keptNars(""), []);
    assert.throws(() => Deno.statSync(file), Deno.errors.NotFound);
  });
}

lostTest(
  "lost nar: while upstreams fail, a narinfo that had one stays, a pushed one not",
  async () => {
    await using scene = await Scene.open();
    Deno.removeSync(scene.file);
    scene.upstream.onRequest = failing;
    assert.equal(await scene.status(scene.narPath), 404);
    assert.equal(await scene.status(PATH), 200);

    await using pushed = await Scene.open({ uploads: ALLOWED, tokens: [WRITE_TOKEN] }, true);
    Deno.removeSync(pushed.file);
    pushed.upstream.onRequest = failing;
    assert.equal(await pushed.status(pushed.narPath), 404);
    assert.equal(await pushed.status(PATH), 404);
  },
);

lostTest("lost nar: a file that comes back with its disk is served again", async () => {
  await using scene = await Scene.open({ negativeTtlMs: 0 });
  const { file } = scene;
  Deno.renameSync(file, `${scene.cache.tempPath}/away`);
  scene.upstream.onRequest = absent;
  assert.equal(await scene.status(scene.narPath), 404);
  assert.equal(await scene.status(PATH), 404);

  Deno.renameSync(`${scene.cache.tempPath}/away`, file);

  assert.equal((await scene.cache.get(PATH)).headers.get("x-cache"), "HIT");
  assert.equal((await scene.cache.get(scene.narPath)).headers.get("x-cache"), "HIT");
});

/** A cache whose memory has the file that its disk has lost. */
async function hotScene(options: Partial<TestCacheOptions> = {}, isPushed = false) {
  const holder = await Scene.open(options, isPushed);
  const limits = { fileBytesMax: 1e6, totalBytesMax: 1e7 };
  const nars = new HotNarStore(holder.cache.nars, limits);
  const { metadata } = holder.cache;
  const cache = await TestCache.open({ upstreams: [holder.upstream], ...options, metadata, nars });
  for (let count = 0; count < 2; count++) await (await cache.get(holder.narPath)).bytes();
  Deno.removeSync(holder.file);
  return {
    ...{ cache, holder },
    async [Symbol.asyncDispose]() {
      await cache[Symbol.asyncDispose]();
      await holder[Symbol.asyncDispose]();
    },
  };
}

lostTest("lost nar: bytes in memory do not let explain and plan say that it is here", async () => {
  const stateIn = async (cache: TestCache) => {
    const lines = (await (await cache.post("/plan", object.storePathHash)).text()).split("\n");
    return JSON.parse(lines[0] ?? "").state;
  };
  {
    await using scene = await hotScene();
    assert.equal(await stateIn(scene.cache), "upstream");
  }
  await using scene = await hotScene();
  const { cache, holder } = scene;
  const { nar, verdict } = await (await cache.get(`/explain?path=${object.storePathHash}`)).json();
  assert.deepEqual([verdict, nar.is_stored, nar.is_lost], ["nar_not_stored", false, true]);
  assert.equal((await cache.get(PATH)).status, 200);
  assert.deepEqual(cache.log.filter(({ msg }) => /stored again/.test(msg)), []);

  const answer = await cache.get(holder.narPath);
  assert.equal(answer.headers.get("x-cache"), "MISS", "it is fetched again");
  await answer.bytes();
  await cache.downloadsOver();
  assert.equal(await stateIn(cache), "here");
});

Deno.test("lost nar: while the storage does not answer, plan and explain say no hit", async () => {
  await using holder = await Scene.open();
  let isAway = true;
  const open: Around = async (call) => {
    if (isAway) throw new Failure("unavailable", "Cannot open NAR file: away");
    return await call();
  };
  const nars = around(holder.cache.nars, { open });
  const { metadata } = holder.cache;
  const cacheOf = (upstreams: readonly FakeUpstream[]) =>
    TestCache.open({ upstreams, metadata, nars });
  const statesIn = async (cache: TestCache) => {
    const lines = (await (await cache.post("/plan", object.storePathHash)).text()).split("\n");
    const { state, upstreams } = JSON.parse(lines[0] ?? "");
    const explained = await cache.get(`/explain?path=${object.storePathHash}`);
    return [state, upstreams.length, (await explained.json()).verdict];
  };
  await using cache = await cacheOf([holder.upstream]);
  assert.deepEqual(await statesIn(cache), ["upstream", 1, "storage_away"]);
  await using alone = await cacheOf([]);
  assert.deepEqual(await statesIn(alone), ["unknown", 0, "storage_away"]);
  assert.equal((await alone.get(holder.narPath)).status, 404);

  isAway = false;
  for (const one of [cache, alone]) assert.deepEqual(await statesIn(one), ["here", 0, "hit"]);
});

lostTest("lost nar: bytes in memory keep nobody from pushing it again", async () => {
  await using scene = await hotScene({ uploads: ALLOWED, tokens: [WRITE_TOKEN] }, true);
  const { cache } = scene;
  assert.equal((await cache.get(`/upload${PATH}`, AUTHORIZED)).status, 404);
  assert.deepEqual(await push(cache, await pushOf(object)), [201, 200]);
  assert.equal((await cache.get(`/upload${PATH}`, AUTHORIZED)).status, 200);
});

lostTest("lost nar: a rebuilt path takes the place of the lost one", async () => {
  const key = generateSecretKey("theirs-1");
  await using rebuilt = await fakeUpstream({ objects: [object], compression: "none", key });
  await using scene = await Scene.open({}, false, key);
  Deno.removeSync(scene.file);
  scene.upstream.onRequest = async ({ path }) => {
    if (path === PATH) return new Response(await rebuilt.narinfoOf(object));
    if (path.endsWith(".xz")) return new Response(null, { status: 404 });
    return path.startsWith("/nar/") ? new Response(object.nar) : undefined;
  };
  assert.equal(await scene.status(scene.narPath), 404);

  const path = await scene.cache.narPath(object.storePathHash);
  assert.notEqual(path, scene.narPath);
  assertSameBytes(await (await scene.cache.get(path)).bytes(), object.nar);
});

Deno.test("narinfo: one whose NAR is not here is asked for again an hour after it was seen", async () => {
  let nowMs = 1_000 * HOUR_MS;
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], nowMs: () => nowMs });
  await cache.narinfo(object.storePathHash);
  nowMs += HOUR_MS;
  assert.equal((await cache.get(PATH)).headers.get("x-cache"), "HIT");

  nowMs++;
  assert.equal((await cache.get(PATH)).headers.get("x-cache"), "MISS");
  assert.equal((await cache.get(PATH)).headers.get("x-cache"), "HIT");
  assert.equal(upstream.count(PATH), 2);

  nowMs += 2 * HOUR_MS;
  upstream.onRequest = failing;
  assert.equal((await cache.get(PATH)).status, 200, "nobody could tell");
  upstream.onRequest = absent;
  assert.equal((await cache.get(PATH)).status, 404);
});

Deno.test("narinfo: one whose NAR is here is not asked for again", async () => {
  let nowMs = 1_000 * HOUR_MS;
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], nowMs: () => nowMs });
  await (await cache.get(await cache.narPath(object.storePathHash))).bytes();
  await cache.downloadsOver();
  nowMs += 100 * 24 * HOUR_MS;
  upstream.onRequest = absent;

  assert.equal((await cache.get(PATH)).headers.get("x-cache"), "HIT");
});

Deno.test("narinfo: after a NAR that its upstream lacks, another upstream's comes at once", async () => {
  await using rebuilt = await fakeUpstream({ objects, stored: true, priority: 10 });
  await using other = await fakeUpstream({ objects, compression: "none", priority: 50 });
  await using cache = await TestCache.open({ upstreams: [rebuilt, other] });
  rebuilt.onRequest = ({ path }) =>
    path.startsWith("/nar/") ? new Response(null, { status: 404 }) : undefined;
  const pathOf = (of: StoreObject) => cache.narPath(of.storePathHash);
  const [first, second, third, fourth] = objects as [StoreObject, ...StoreObject[]];
  for (const one of [first, second, third]) {
    assert.ok(one);
    assert.equal((await cache.get(await pathOf(one))).status, 404);
    const path = await pathOf(one);
    assert.match(path, /\.nar$/);
    assertSameBytes(await (await cache.get(path)).bytes(), one.nar);
  }

  assert.ok(fourth);
  assert.match(await pathOf(fourth), /\.nar$/, "it comes last for every narinfo by now");
  assert.equal(rebuilt.count(narinfoOf(fourth)), 0);
  other.onRequest = absent;
  assert.match(await pathOf(objects[4] as StoreObject), /\.nar\.xz$/, "but it is not left out");
});

Deno.test("narinfo: a stored one of an upstream that lost several NARs is asked for again", async () => {
  await using rebuilt = await fakeUpstream({ objects, stored: true, priority: 10 });
  await using other = await fakeUpstream({ objects, compression: "none", priority: 50 });
  await using cache = await TestCache.open({ upstreams: [rebuilt, other] });
  const pathOf = (of: StoreObject) => cache.narPath(of.storePathHash);
  const paths = await Promise.all(objects.map(pathOf));
  rebuilt.onRequest = ({ path }) =>
    path.startsWith("/nar/") ? new Response(null, { status: 404 }) : undefined;
  for (const path of paths.slice(0, 3)) assert.equal((await cache.get(path)).status, 404);

  const [, , , fourth, fifth] = objects as [...StoreObject[]];
  assert.ok(fourth && fifth);
  const path = await pathOf(fourth);
  assertSameBytes(await (await cache.get(path)).bytes(), fourth.nar);

  other.onRequest = absent;
  assert.equal(await pathOf(fifth), paths[4], "nobody else has it");
  const times = other.count(narinfoOf(fifth));
  assert.equal(await pathOf(fifth), paths[4]);
  assert.equal(other.count(narinfoOf(fifth)), times, "it is not asked for each time");
});

class Scene implements AsyncDisposable {
  readonly cache: TestCache;
  readonly upstream: FakeUpstream;
  readonly narPath: string;

  private constructor(cache: TestCache, upstream: FakeUpstream, narPath: string) {
    this.cache = cache;
    this.upstream = upstream;
    this.narPath = narPath;
  }

  /** A cache that keeps the object, from its upstream or from a push. */
  static async open(
    options: Partial<TestCacheOptions> = {},
    isPushed = false,
    key = KEY,
  ): Promise<Scene> {
    const upstream = await fakeUpstream({ objects: isPushed ? [] : [object], stored: true, key });
    const cache = await TestCache.open({ upstreams: [upstream], ...options });
    if (isPushed) assert.deepEqual(await push(cache, await pushOf(object)), [201, 201]);
    const narPath = await cache.narPath(object.storePathHash);
    await (await cache.get(narPath)).bytes();
    await cache.downloadsOver();
    return new Scene(cache, upstream, narPath);
  }

  get file(): string {
    return this.cache.fileOf(this.narPath.slice("/nar/".length));
  }

  async status(path: string, method = "GET"): Promise<number> {
    const headers = path.startsWith("/upload") ? AUTHORIZED : {};
    const answer = await this.cache.request(method, path, headers);
    await answer.body?.cancel();
    return answer.status;
  }

  // deno-lint-ignore no-explicit-any
  async explain(): Promise<any> {
    return await (await this.cache.get(`/explain?path=${object.storePathHash}`)).json();
  }

  async readWhole(): Promise<void> {
    const answer = await this.cache.get(this.narPath);
    assert.equal(answer.status, 200);
    await answer.bytes();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cache[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
  }
}

const KEY = generateSecretKey("one-1");

const AUTHORIZED = { authorization: `Bearer ${WRITE_TOKEN.secret}` };

function lostTest(name: string, fn: () => Promise<void>): void {
  testWhere(NARS_ELSEWHERE, name, fn);
}
