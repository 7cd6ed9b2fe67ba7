import assert from "node:assert/strict";
import { BlackHole } from "../support/black_hole.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const objects = Array.from({ length: 6 }, (_, seed) => makeStoreObject({ name: "many", seed }));
const [PATH = "", ...PATHS] = objects.map(({ storePathHash }) => `/${storePathHash}.narinfo`);
const stored = { objects, stored: true } as const;

/** The timeouts that are the default. */
const TIMEOUT_MS = 3_000;
/** Longer than one is waited for that takes no connection, and shorter than the timeout. */
const SLOW_MS = 1_200;

const silence = () => new Promise<undefined>(() => {});
const slowly = () =>
  new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), SLOW_MS));

Deno.test("unproven: a slow upstream is found by the first request", async () => {
  await using slow = await fakeUpstream(stored);
  slow.onRequest = slowly;
  await using cache = await TestCache.open({ upstreams: [slow], timeoutMs: TIMEOUT_MS });
  cache.probeUpstreams();
  assert.equal((await ask(cache, PATH)).status, 200);
  assert.equal((await ask(cache, PATH)).source, "HIT");
  assert.equal(slow.count(/\.narinfo$/), 1);
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
