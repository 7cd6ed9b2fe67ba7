import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { heldUntil, status } from "../support/faults.ts";
import { fan, of, prefetched, prefetchingCache, xCacheOf } from "../support/prefetching.ts";
import { scrape } from "../support/scrape.ts";
import { chain, makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

/** An upstream that held a narinfo for longer would be spared, on a machine that is paused. */
const HELD_MS = 60_000;

const pathOf = ({ storePathHash }: { readonly storePathHash: string }) =>
  `/${storePathHash}.narinfo`;

Deno.test("prefetch: after one miss the narinfos of the whole closure are here", async () => {
  const objects = chain(20);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  const [top, ...rest] = objects.toReversed();
  assert.ok(top);

  assert.equal(await xCacheOf(cache.get(pathOf(top))), "MISS");
  await cache.prefetchOver();
  for (const object of rest) assert.equal(await xCacheOf(cache.get(pathOf(object))), "HIT");
  for (const object of rest) assert.equal(await xCacheOf(cache.get(pathOf(object))), "HIT");

  for (const object of objects) assert.equal(upstream.count(pathOf(object)), 1);
  const narinfos = await scrape(cache);
  assert.equal(narinfos.value(`larder_prefetch_total${of("narinfo", "used")}`), rest.length);
  const counted = (result: string) =>
    narinfos.value(`larder_cache_requests_total${of("narinfo", result)}`);
  // The first request for a prefetched narinfo does not flatter the hits.
  assert.deepEqual([counted("miss"), counted("prefetched"), counted("hit")], [1, 19, 19]);
});

Deno.test("prefetch: HEAD of a narinfo prefetches narinfos, and no NAR", async () => {
  const objects = chain(3);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  const [bottom, middle, top] = objects;
  assert.ok(bottom && middle && top);
  await cache.head(pathOf(top));
  await cache.prefetchOver();
  assert.equal(await xCacheOf(cache.head(pathOf(middle))), "HIT");
  await cache.prefetchOver();
  assert.equal(upstream.count(/\.narinfo$/), 3);
  assert.equal(upstream.count(/^\/nar\//), 0);
});

Deno.test("prefetch: HEAD of a prefetched narinfo leaves its NAR to the first GET", async () => {
  const [leaf, top] = chain(2);
  assert.ok(leaf && top);
  await using upstream = await fakeUpstream({ objects: [leaf, top], stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  await cache.narinfo(top.storePathHash);
  await cache.prefetchOver();
  for (let times = 0; times < 2; times++) {
    assert.equal(await xCacheOf(cache.head(pathOf(leaf))), "HIT");
  }
  await cache.prefetchOver();
  assert.equal(upstream.count(/^\/nar\//), 1);
  assert.deepEqual(await prefetched(cache), { [of("narinfo", "used")]: 1 });
  await cache.narinfo(leaf.storePathHash);
  await cache.prefetchOver();
  assert.equal(upstream.count(/^\/nar\//), 2);
  assert.deepEqual(await prefetched(cache), { [of("narinfo", "used")]: 1 });
});

Deno.test("prefetch: at most 64 narinfos are in flight that no client waits for", async () => {
  const objects = fan(200);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream], timeoutMs: HELD_MS });
  const release = await heldWalk(upstream, cache, objects);
  // A client's request on top of them, so that one more of them would have come before it.
  await cache.get(`/${"0".repeat(32)}.narinfo`);
  assert.equal(upstream.count(/\.narinfo$/), 1 + 64 + 1);
  release();
  await cache.prefetchOver();
  // No client has followed the walk.
  assert.equal(upstream.count(/\.narinfo$/), 1 + 64 + 1);
});

Deno.test("prefetch: narinfos come at the pace of clients, 64 ahead of them", async () => {
  const objects = fan(300);
  const top = objects.at(-1);
  assert.ok(top);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  assert.equal(await xCacheOf(cache.get(pathOf(top))), "MISS");
  const used = new Set([top]);
  for (const method of ["GET", "HEAD", "GET"]) {
    await cache.prefetchOver();
    assert.equal(upstream.count(/\.narinfo$/), used.size + 64);
    const here = objects.filter((one) => upstream.count(pathOf(one)) > 0 && !used.has(one));
    for (const object of here.slice(0, 50)) {
      used.add(object);
      assert.equal(await xCacheOf(cache.request(method, pathOf(object))), "HIT");
    }
  }
  await cache.prefetchOver();
  assert.equal(upstream.count(/\.narinfo$/), used.size + 64);
});

Deno.test("prefetch: a client's narinfo passes those that no client waits for", async () => {
  const objects = fan(200);
  const other = makeStoreObject({ name: "other" });
  await using upstream = await fakeUpstream({ objects: [...objects, other], stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream], timeoutMs: HELD_MS });
  const release = await heldWalk(upstream, cache, objects);

  assert.equal(await xCacheOf(cache.get(pathOf(other))), "MISS");
  release();
  await cache.prefetchOver();
});

Deno.test("prefetch: a request for a narinfo in flight joins it", async () => {
  const [leaf, top] = chain(2);
  assert.ok(leaf && top);
  await using upstream = await fakeUpstream({ objects: [leaf, top], stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  const held = Promise.withResolvers<void>();
  upstream.breakNarinfo(heldUntil(held.promise), leaf);
  await cache.get(pathOf(top));
  await upstream.requested(pathOf(leaf));
  const asked = [1, 2, 3].map(() => xCacheOf(cache.get(pathOf(leaf))));
  // It takes as many turns as the others, and began after them.
  await cache.get(pathOf(top));
  held.resolve();
  assert.deepEqual(await Promise.all(asked), ["JOINED", "JOINED", "JOINED"]);
  await cache.prefetchOver();
  assert.equal(upstream.count(pathOf(leaf)), 1);
  const requests = (await scrape(cache)).nonZero("larder_cache_requests_total");
  assert.equal(requests[of("narinfo", "prefetched")], 1);
  assert.equal(requests[of("narinfo", "joined")], 2);
});

Deno.test("prefetch: a client that joined one which failed asks for itself", async () => {
  const [leaf, top] = chain(2);
  assert.ok(leaf && top);
  await using upstream = await fakeUpstream({ objects: [leaf, top], stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  const held = Promise.withResolvers<void>();
  let times = 0;
  upstream.breakNarinfo((answer, exchange) => {
    if (times++ > 0) return answer;
    return held.promise.then(() => status(500)(answer, exchange));
  }, leaf);
  await cache.get(pathOf(top));
  await upstream.requested(pathOf(leaf));
  const asked = cache.get(pathOf(leaf));
  // It takes as many turns as the others, and began after them.
  await cache.get(pathOf(top));
  held.resolve();
  assert.equal((await asked).status, 200);
  assert.equal(upstream.count(pathOf(leaf)), 2);
});

Deno.test("prefetch: a narinfo that no prefetch found is not absent for clients", async () => {
  const [leaf, top] = chain(2);
  assert.ok(leaf && top);
  await using upstream = await fakeUpstream({ objects: [top], stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  await cache.get(pathOf(top));
  await cache.prefetchOver();
  assert.deepEqual(await prefetched(cache), { [of("narinfo", "failed")]: 1 });
  upstream.add(leaf);
  assert.equal((await cache.get(pathOf(leaf))).status, 200);
});

Deno.test("prefetch: failures leave the log and the upstream's health alone", async () => {
  const objects = fan(20);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream], timeoutMs: 2_000 });
  const top = objects.at(-1);
  assert.ok(top);
  for (const leaf of objects.slice(0, -1)) {
    upstream.breakNarinfo(() => new Promise(() => undefined), leaf);
  }
  upstream.breakNar(status(500));
  await cache.get(pathOf(top));
  await upstream.requested(/leaf|narinfo$/, 21);
  await cache.prefetchOver();
  assert.deepEqual([...cache.logged("warn"), ...cache.logged("error")], []);
  assert.equal((await scrape(cache)).value(`larder_upstream_up{upstream="${upstream.url}"}`), 1);
  // The top's NAR failed, too.
  const results = await prefetched(cache);
  assert.equal(results[of("narinfo", "failed")], 20);
  assert.equal(results[of("nar", "failed")], 1);
});

Deno.test("prefetch: nothing is prefetched where it is turned off", async () => {
  const objects = chain(5);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const top = objects.at(-1);
  assert.ok(top);
  await cache.get(pathOf(top));
  await cache.get(`/${"0".repeat(32)}.narinfo`);
  assert.equal(upstream.count(/\.narinfo$|^\/nar\//), 2);
});

/** Starts the walk from the last object, until 64 narinfos of the others wait for the result. */
async function heldWalk(
  upstream: FakeUpstream,
  cache: TestCache,
  objects: readonly StoreObject[],
): Promise<() => void> {
  const top = objects.at(-1);
  assert.ok(top);
  const held = Promise.withResolvers<void>();
  for (const leaf of objects.slice(0, -1)) upstream.breakNarinfo(heldUntil(held.promise), leaf);
  await cache.get(pathOf(top));
  await eventually("64 are in flight", () => upstream.count(/\.narinfo$/) === 1 + 64);
  return held.resolve;
}
