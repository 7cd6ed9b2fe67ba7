import assert from "node:assert/strict";
import { BlackHole } from "../support/black_hole.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { assertInTime, timedTest } from "../support/timed_test.ts";

const objects = Array.from({ length: 6 }, (_, seed) => makeStoreObject({ name: "many", seed }));
const [PATH = "", ...PATHS] = objects.map(({ storePathHash }) => `/${storePathHash}.narinfo`);
const stored = { objects, stored: true } as const;

/** The timeouts that are the default. */
const TIMEOUT_MS = 3_000;
const SOON_MS = 1_000;
/** Longer than one is waited for that takes no connection, and shorter than the timeout. */
const SLOW_MS = 1_200;

const silence = () => new Promise<undefined>(() => {});
const slowly = () =>
  new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), SLOW_MS));

timedTest("unproven: with a black hole alone an unknown path is soon 404", async () => {
  using hole = await BlackHole.open();
  await using cache = await TestCache.open({ upstreams: [hole.url], timeoutMs: TIMEOUT_MS });
  cache.probeUpstreams();
  for (const path of [PATH, PATH, ...PATHS]) {
    const { status, source, tookMs } = await ask(cache, path);
    // Not remembered.
    assert.deepEqual([status, source], [404, "MISS"]);
    assertInTime(tookMs, SOON_MS);
  }
});

Deno.test("unproven: a slow upstream is found by the first request", async () => {
  await using slow = await fakeUpstream(stored);
  slow.onRequest = slowly;
  await using cache = await TestCache.open({ upstreams: [slow], timeoutMs: TIMEOUT_MS });
  cache.probeUpstreams();
  assert.equal((await ask(cache, PATH)).status, 200);
  assert.equal((await ask(cache, PATH)).source, "HIT");
  assert.equal(slow.count(/\.narinfo$/), 1);
});

timedTest("unproven: a slow upstream is found beside a black hole that is preferred", async () => {
  using hole = await BlackHole.open();
  await using slow = await fakeUpstream(stored);
  slow.onRequest = slowly;
  const options = { upstreams: [hole.url, slow], priorities: [1, 2] };
  await using cache = await TestCache.open({ ...options, timeoutMs: TIMEOUT_MS });
  const { status, tookMs } = await ask(cache, PATH);
  assert.equal(status, 200);
  assertInTime(tookMs, SLOW_MS + 500);
});

timedTest("unproven: a preferred mute upstream holds up the others only briefly", async () => {
  await using mute = await fakeUpstream(stored);
  await using other = await fakeUpstream(stored);
  mute.onRequest = silence;
  const options = { upstreams: [mute, other], priorities: [1, 2] };
  await using cache = await TestCache.open({ ...options, timeoutMs: TIMEOUT_MS });
  const { status, tookMs } = await ask(cache, PATH);
  assert.equal(status, 200);
  assertInTime(tookMs, SOON_MS);
});

Deno.test("unproven: after a timeout a slow upstream is found by the next request", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream], timeoutMs: 1_500 });
  assert.equal((await ask(cache, PATH)).status, 200);
  upstream.onRequest = silence;
  assert.equal((await ask(cache, PATHS[0])).status, 404);
  upstream.onRequest = slowly;
  assert.equal((await ask(cache, PATHS[1])).status, 200);
});

Deno.test("unproven: a path that a slow upstream lacks is remembered as absent", async () => {
  await using slow = await fakeUpstream({ stored: true });
  slow.onRequest = slowly;
  await using cache = await TestCache.open({ upstreams: [slow], timeoutMs: TIMEOUT_MS });
  for (const source of ["MISS", "HIT"]) {
    const answer = await ask(cache, PATH);
    assert.deepEqual([answer.status, answer.source], [404, source]);
  }
});

timedTest("unproven: one that accepts and is silent costs 3 timeouts, then nothing", async () => {
  await using mute = await fakeUpstream(stored);
  mute.onRequest = silence;
  const timeoutMs = 1_100;
  await using cache = await TestCache.open({ upstreams: [mute], timeoutMs });
  for (const path of [PATH, ...PATHS.slice(0, 2)]) {
    const { status, tookMs } = await ask(cache, path);
    assert.equal(status, 404);
    assert.ok(tookMs >= timeoutMs - 5, `it took ${tookMs} ms`);
    assertInTime(tookMs, timeoutMs + 500);
  }
  await eventually("it is down", () => cache.log.some(({ msg }) => msg === "upstream is down"));
  const { status, tookMs } = await ask(cache, PATHS[3]);
  assert.equal(status, 404);
  assertInTime(tookMs, 100);
  assert.equal(mute.count(/\.narinfo$/), 3);
});

timedTest("unproven: an upstream that vanished is waited for once", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream], timeoutMs: 1_500 });
  assert.equal((await ask(cache, PATH)).status, 200);
  await upstream.vanish();
  await ask(cache, PATHS[0]);
  const { status, tookMs } = await ask(cache, PATHS[1]);
  assert.equal(status, 404);
  assertInTime(tookMs, SOON_MS);
});

timedTest("unproven: a preferred black hole costs hits of another little", async () => {
  using hole = await BlackHole.open();
  await using good = await fakeUpstream({ ...stored, priority: 2 });
  const options = { upstreams: [hole.url, good], timeoutMs: 1_500, priorities: [1, 2] };
  await using cache = await TestCache.open(options);
  for (const path of [PATH, ...PATHS]) {
    const { status, tookMs } = await ask(cache, path);
    assert.equal(status, 200);
    assertInTime(tookMs, SOON_MS);
  }
  await eventually("it is down", () => cache.log.some(({ msg }) => msg === "upstream is down"));
});

Deno.test("unproven: a larder that ends leaves no question open", async () => {
  using hole = await BlackHole.open();
  await using cache = await TestCache.open({ upstreams: [hole.url], timeoutMs: 60_000 });
  assert.equal((await ask(cache, PATH)).status, 404);
});

async function ask(cache: TestCache, path = "") {
  const startedAtMs = performance.now();
  const { status, headers } = await cache.get(path);
  const tookMs = performance.now() - startedAtMs;
  return { status, source: headers.get("x-cache"), tookMs };
}
