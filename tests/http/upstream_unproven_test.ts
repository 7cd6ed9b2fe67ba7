import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const objects = Array.from({ length: 6 }, (_, seed) => makeStoreObject({ name: "many", seed }));
const [PATH = "", ...PATHS] = objects.map(({ storePathHash }) => `/${storePathHash}.narinfo`);
const stored = { objects, stored: true } as const;

/** The timeouts that are the default. */
const TIMEOUT_MS = 3_000;
const SOON_MS = 1_000;
/** Longer than one is waited for that may be dead, and shorter than the timeout. */
const SLOW_MS = 1_200;

const silence = () => new Promise<undefined>(() => {});
const slowly = () =>
  new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), SLOW_MS));

Deno.test("unproven: with a black hole alone an unknown path is soon 404", async () => {
  await using hole = await fakeUpstream(stored);
  hole.onRequest = silence;
  await using cache = await TestCache.open({ upstreams: [hole], timeoutMs: TIMEOUT_MS });
  cache.lookAtUpstreams();
  for (const path of [PATH, PATH, ...PATHS]) {
    const startedAt = performance.now();
    const answer = await cache.get(path);
    // Not remembered.
    assert.deepEqual([answer.status, answer.headers.get("x-cache")], [404, "MISS"]);
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs < SOON_MS, `it took ${Math.round(tookMs)} ms`);
  }
});

Deno.test("unproven: a slow upstream that lives is found, and waited for then", async () => {
  await using slow = await fakeUpstream(stored);
  slow.onRequest = slowly;
  await using cache = await TestCache.open({ upstreams: [slow], timeoutMs: TIMEOUT_MS });
  assert.equal((await cache.get(PATH)).status, 404);

  await eventually("its answer is kept", async () => await isKept(cache, 0));
  assert.equal((await cache.get(PATH)).headers.get("x-cache"), "HIT");
  assert.equal(slow.count(/\.narinfo$/), 1);
  assert.equal((await cache.get(PATHS[0] ?? "")).status, 200);
});

Deno.test("unproven: what a slow upstream does not have is remembered in the end", async () => {
  await using slow = await fakeUpstream({ stored: true });
  slow.onRequest = slowly;
  await using cache = await TestCache.open({ upstreams: [slow], timeoutMs: TIMEOUT_MS });
  assert.equal((await cache.get(PATH)).headers.get("x-cache"), "MISS");
  await slow.requested(PATH);
  await eventually("its answer counts", async () => {
    const isHit = (await cache.get(PATH)).headers.get("x-cache") === "HIT";
    return isHit;
  });
});

Deno.test("unproven: an upstream that fell silent is waited for once", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream], timeoutMs: 1_500 });
  assert.equal((await cache.get(PATH)).status, 200);
  upstream.onRequest = silence;
  await cache.get(PATHS[0] ?? "");
  const startedAt = performance.now();
  assert.equal((await cache.get(PATHS[1] ?? "")).status, 404);
  assert.ok(performance.now() - startedAt < SOON_MS);
});

Deno.test("unproven: a preferred black hole costs hits of another little", async () => {
  await using hole = await fakeUpstream({ ...stored, priority: 1 });
  await using good = await fakeUpstream({ ...stored, priority: 2 });
  hole.onRequest = ({ path }) => path.endsWith(".narinfo") ? silence() : undefined;
  const options = { upstreams: [hole, good], timeoutMs: 1_000, priorities: [1, 2] };
  await using cache = await TestCache.open(options);
  for (const path of [PATH, ...PATHS]) {
    const startedAt = performance.now();
    assert.equal((await cache.get(path)).status, 200);
    assert.ok(performance.now() - startedAt < SOON_MS + 200);
  }
  await eventually("it is down", () => cache.log.some(({ msg }) => msg === "upstream is down"));
});

Deno.test("unproven: a larder that ends leaves no question open", async () => {
  await using hole = await fakeUpstream(stored);
  hole.onRequest = silence;
  await using cache = await TestCache.open({ upstreams: [hole], timeoutMs: 60_000 });
  assert.equal((await cache.get(PATH)).status, 404);
});

async function isKept(cache: TestCache, index: number): Promise<boolean> {
  const object = objects[index];
  assert.ok(object);
  return await cache.metadata.findNarinfo(object.storePathHash as never) !== undefined;
}
