import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import { HotNarStore } from "../../src/storage/hot_nar_store.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { testWhere } from "../support/program.ts";
import { RecordedNarStore } from "../support/recorded_nar_store.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { NARS_ELSEWHERE } from "../support/shared_servers.ts";
import { STAYS } from "../support/staying_client.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { TestCache, type TestCacheOptions } from "../support/test_cache.ts";

/** No answer is late here, however busy the machine is. */
const LONG_TIMEOUT_MS = 60_000;
const small = makeStoreObject({ name: "small-1.0", size: 50_000 });
/** Too large to be hashed before its first byte is sent. */
const large = makeStoreObject({ name: "large-1.0", size: 6_000_000 });

rotTest("rot: a changed file is fetched again at the next request", async () => {
  await using scene = await Scene.open(small);
  scene.rot();
  const answer = await scene.get();
  assert.equal(answer.headers.get("x-cache"), "MISS");
  assertSameBytes(await answer.bytes(), await scene.right());

  await scene.cache.downloadsOver();
  assert.equal((await scene.get()).headers.get("x-cache"), "HIT");
  assert.deepEqual(Deno.readFileSync(scene.path), await scene.right());
  assert.deepEqual(scene.damages(), ["stored nar is damaged"]);
});

rotTest("rot: a changed file that no upstream has any more is 404, and goes", async () => {
  await using scene = await Scene.open(small);
  await scene.upstream.stop();
  scene.rot();
  for (let count = 0; count < 3; count++) assert.equal((await scene.get()).status, 404);
  assert.deepEqual(scene.damages(), ["stored nar is damaged"]);
  assert.deepEqual(await scene.cache.narNames(), []);
  assert.equal(scene.cache.space.budget.usedBytes, 0);
});

rotTest("rot: a file of a former process is hashed if it changed since", async () => {
  await using scene = await Scene.open(small);
  const { mtime, atime, ctime } = Deno.statSync(scene.path);
  scene.rot();
  // As a person does who copies a backup over it. The time of that has whole seconds.
  await eventually("the clock goes on", () => {
    Deno.utimeSync(scene.path, atime ?? 0, mtime ?? 0);
    return Deno.statSync(scene.path).ctime?.getTime() !== ctime?.getTime();
  });
  await using next = await scene.nextProcess();
  assertSameBytes(await (await next.get(scene.url)).bytes(), await scene.right());
});

rotTest("rot: a file with its seal is not read again by the next process", async () => {
  await using scene = await Scene.open(large);
  const nars = new RecordedNarStore(scene.cache.nars);
  await using next = await scene.nextProcess({ nars });
  const answer = await next.get(scene.url, { range: "bytes=5000000-5000009" });
  assert.equal((await answer.bytes()).length, 10);
  assert.deepEqual(nars.reads, [[5_000_000, 5_000_010]]);
});

rotTest("rot: a file without a seal is hashed once, by one process of many", async () => {
  await using scene = await Scene.open(large);
  await scene.touch();
  const size = (await scene.right()).length;
  for (const reads of [[[0, size], [0, 10]], [[0, 10]]]) {
    const nars = new RecordedNarStore(scene.cache.nars);
    await using next = await scene.nextProcess({ nars });
    await (await next.get(scene.url, { range: "bytes=0-9" })).bytes();
    assert.deepEqual(nars.reads, reads);
    await eventually("the seal is written", () => scene.isSealed());
  }
});

rotTest("rot: an intact file of a former process is served from disk", async () => {
  await using scene = await Scene.open(large);
  await using next = await scene.nextProcess();
  await scene.upstream.stop();
  for (const headers of [{ range: "bytes=5000000-5000009" }, {}] as const) {
    const answer = await next.get(scene.url, headers);
    assert.equal(answer.headers.get("x-cache"), "HIT");
    const right = await scene.right();
    const wanted = "range" in headers ? right.subarray(5_000_000, 5_000_010) : right;
    assertSameBytes(await answer.bytes(), wanted);
  }
});

rotTest("rot: of a large changed file no wrong byte goes out; it is fetched again", async () => {
  await using scene = await Scene.open(large);
  scene.rot();
  assertSameBytes(await (await scene.get()).bytes(), await scene.right());
  assert.deepEqual(scene.damages(), ["stored nar is damaged"]);
});

rotTest("rot: a large changed file that no upstream has is 404, for HEAD too", async () => {
  await using scene = await Scene.open(large);
  scene.rot();
  await scene.upstream.stop();
  assert.equal((await scene.cache.head(scene.url)).status, 404);
  assert.equal((await scene.get()).status, 404);
});

rotTest("rot: parts of a large changed file are right, however many requests come", async () => {
  await using scene = await Scene.open(large);
  scene.rot();
  const parts = await Promise.all(
    [0, 100, 200, 5_999_000].map(async (start) => {
      const answer = await scene.get({ range: `bytes=${start}-${start + 9}` });
      assert.equal(answer.status, 206);
      return [start, await answer.bytes()] as const;
    }),
  );
  const right = await scene.right();
  for (const [start, bytes] of parts) assert.deepEqual(bytes, right.subarray(start, start + 10));
  assert.deepEqual(scene.damages(), ["stored nar is damaged"]);
});

rotTest("rot: a file in memory is right whatever becomes of it on disk", async () => {
  await using scene = await Scene.open(small);
  const nars = new HotNarStore(scene.cache.nars, { fileBytesMax: 1e6, totalBytesMax: 1e7 });
  await using next = await scene.nextProcess({ nars });
  for (let count = 0; count < 2; count++) await (await next.get(scene.url)).bytes();
  scene.rot();
  const answer = await next.get(scene.url);
  assert.equal(answer.headers.get("x-cache"), "HIT");
  assertSameBytes(await answer.bytes(), await scene.right());
});

rotTest("rot: wrong bytes never get into memory", async () => {
  await using scene = await Scene.open(small);
  scene.rot();
  await scene.upstream.stop();
  const nars = new HotNarStore(scene.cache.nars, { fileBytesMax: 1e6, totalBytesMax: 1e7 });
  await using next = await scene.nextProcess({ nars });
  for (let count = 0; count < 2; count++) assert.equal((await next.get(scene.url)).status, 404);
});

rotTest("rot: HEAD of a changed file is a miss, like GET", async () => {
  await using scene = await Scene.open(small);
  scene.rot();
  const head = await scene.cache.head(scene.url);
  assert.deepEqual([head.status, head.headers.get("x-cache")], [200, "MISS"]);
});

/** A test that changes a NAR file. A gateway in front of a bucket's files does not notice that. */
function rotTest(name: string, fn: () => Promise<void>): void {
  testWhere(NARS_ELSEWHERE, name, fn);
}

/** A cache that keeps one NAR, and its upstream. */
class Scene implements AsyncDisposable {
  private constructor(
    readonly object: StoreObject,
    readonly upstream: FakeUpstream,
    readonly cache: TestCache,
    readonly url: string,
  ) {}

  static async open(object: StoreObject): Promise<Scene> {
    const upstream = await fakeUpstream({ objects: [object], stored: true });
    const cache = await TestCache.open({ upstreams: [upstream], timeoutMs: LONG_TIMEOUT_MS });
    const scene = new Scene(object, upstream, cache, await cache.narPath(object.storePathHash));
    await (await scene.get()).bytes();
    await cache.downloadsOver();
    return scene;
  }

  get path(): string {
    return this.cache.fileOf(this.url.slice("/nar/".length));
  }

  get(headers?: HeadersInit): Promise<Response> {
    return this.cache.get(this.url, headers);
  }

  /** Over the same storage; knows nothing of its files. */
  nextProcess(options: Partial<TestCacheOptions> = {}): Promise<TestCache> {
    const { metadata, nars } = this.cache;
    const { upstream } = this;
    const parts = { upstreams: [upstream], timeoutMs: LONG_TIMEOUT_MS, metadata, nars };
    return TestCache.open({ ...parts, ...options });
  }

  /** A bit flips. */
  rot(): void {
    const bytes = Deno.readFileSync(this.path);
    const middle = bytes.length >> 1;
    bytes[middle] = (bytes[middle] ?? 0) ^ 1;
    Deno.writeFileSync(this.path, bytes);
    // A tick of the file system's clock may not have passed since the file was written.
    Deno.utimeSync(this.path, 1, 1);
  }

  /** It has another seal, and the same bytes. */
  async touch(): Promise<void> {
    Deno.utimeSync(this.path, 1, 1);
    assert.equal(await this.isSealed(), false);
  }

  /** Whether its row says how it is now. */
  async isSealed(): Promise<boolean> {
    const [row] = await this.cache.metadata.keptNars("");
    await using stored = row && await this.cache.nars.open(row.at, STAYS);
    return row?.seal === stored?.seal;
  }

  async right(): Promise<Bytes> {
    return (await this.upstream.narFileOf(this.object)).bytes;
  }

  damages(): readonly string[] {
    return this.cache.logged("error").map(({ msg }) => msg);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cache[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
  }
}
