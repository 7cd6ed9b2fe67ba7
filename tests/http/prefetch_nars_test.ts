import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { Gate, status } from "../support/faults.ts";
import {
  fan,
  narRequests,
  of,
  prefetched,
  prefetchingCache,
  pull,
  xCacheOf,
} from "../support/prefetching.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { scrape } from "../support/scrape.ts";
import { chain, makeStoreObject } from "../support/store_object.ts";

const TEN_MINUTES_MS = 10 * 60_000;

Deno.test("prefetch: the NAR of a narinfo that a client got is here before it asks", async () => {
  const object = makeStoreObject({ name: "small" });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  const path = await cache.narPath(object.storePathHash);
  await cache.prefetchOver();
  assert.equal(await xCacheOf(cache.get(path)), "HIT");
  assert.equal(await xCacheOf(cache.get(path)), "HIT");
  assert.equal(narRequests(upstream), 1);
  const after = await scrape(cache);
  assert.deepEqual(after.nonZero("larder_prefetch_total"), { [of("nar", "used")]: 1 });
  assert.equal(after.value(`larder_cache_requests_total${of("nar", "prefetched")}`), 1);
  assert.equal(after.value(`larder_cache_requests_total${of("nar", "hit")}`), 1);
  const { requests, traffic } = await (await cache.get("/stats")).json();
  assert.equal(requests.nar.hit_ratio, 1 / 2);
  // Half of the NAR's bytes, and one narinfo, were sent without an upstream.
  assert.ok(traffic.saved_bytes < traffic.served_bytes / 2 + 1_000);
});

Deno.test("prefetch: a request for a NAR in flight joins its download", async () => {
  const object = makeStoreObject({ name: "small", size: 10_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  const path = await cache.narPath(object.storePathHash);
  await gate.reached(0);
  const asked = [1, 2].map(() => cache.get(path));
  await cache.narinfo(object.storePathHash);
  gate.open();
  const { bytes } = await upstream.narFileOf(object);
  for (const answer of await Promise.all(asked)) {
    assert.equal(answer.headers.get("x-cache"), "JOINED");
    assertSameBytes(await answer.bytes(), bytes);
  }
  await cache.prefetchOver();
  assert.equal(narRequests(upstream), 1);
  assert.deepEqual(await prefetched(cache), { [of("nar", "used")]: 1 });
});

for (const [promise, spareBytes, count] of [["of", 0, 1], ["above", -1, 0]] as const) {
  Deno.test(`prefetch: ${count} requests for a NAR file ${promise} the given size`, async () => {
    const object = makeStoreObject({ name: "sized", size: 50_000 });
    await using upstream = await fakeUpstream({ objects: [object], compression: "none" });
    const narBytesMax = object.narSize + spareBytes;
    await using cache = await prefetchingCache({
      upstreams: [upstream],
      prefetch: { narBytesMax },
    });
    await cache.narinfo(object.storePathHash);
    await cache.prefetchOver();
    assert.equal(narRequests(upstream), count);
  });
}

Deno.test("prefetch: no NAR where their size is limited to 0, narinfos all the same", async () => {
  const objects = fan(3);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({
    upstreams: [upstream],
    prefetch: { narBytesMax: 0 },
  });
  await cache.narinfo(objects.at(-1)?.storePathHash ?? "");
  await cache.prefetchOver();
  assert.equal(narRequests(upstream), 0);
  assert.equal(upstream.count(/\.narinfo$/), 4);
});

Deno.test("prefetch: no NAR of a narinfo that no client got", async () => {
  const objects = fan(5);
  const top = objects.at(-1);
  assert.ok(top);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  await cache.narinfo(top.storePathHash);
  await cache.prefetchOver();
  assert.equal(narRequests(upstream), 1);
  assert.deepEqual(await cache.narNames(), [(await cache.narPath(top.storePathHash)).slice(5)]);
});

Deno.test("prefetch: at most 16 NARs are in flight that no client waits for", async () => {
  const objects = fan(40);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream], timeoutMs: 20_000 });
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  for (const { storePathHash } of objects) await cache.narinfo(storePathHash);
  await upstream.requested(/^\/nar\//, 16);
  // A client's NAR has a place of its own.
  const paths = await Promise.all(objects.map(async (one) => `/${await upstream.narUrlOf(one)}`));
  const place = paths.findIndex((path) => upstream.count(path) === 0);
  const wanted = objects[place];
  assert.ok(wanted);
  const asked = cache.get(await cache.narPath(wanted.storePathHash));
  await upstream.requested(paths[place] ?? "");
  assert.equal(narRequests(upstream), 17);
  gate.open();
  assert.equal((await asked).headers.get("x-cache"), "MISS");
  await (await asked).bytes();
  await cache.prefetchOver();
  assert.equal(narRequests(upstream), objects.length);
});

Deno.test("prefetch: 600 requests for narinfos and none for a NAR cost 50 NARs", async () => {
  const objects = fan(600);
  await using upstream = await fakeUpstream({ objects, stored: true });
  let nowMs = Date.now();
  await using cache = await prefetchingCache({ upstreams: [upstream], nowMs: () => nowMs });
  for (const { storePathHash } of objects.toReversed()) await cache.narinfo(storePathHash);
  await cache.prefetchOver();
  assert.equal(narRequests(upstream), 50);
  nowMs += TEN_MINUTES_MS + 1;
  cache.expirePrefetched();
  await cache.prefetchOver();
  assert.equal((await prefetched(cache))[of("nar", "wasted")], 50);
  assert.equal(narRequests(upstream), 50);
});

Deno.test("prefetch: NARs requested after all narinfos are mostly prefetched", async () => {
  const objects = fan(300);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  const paths: string[] = [];
  for (const { storePathHash } of objects.toReversed()) {
    paths.push(await cache.narPath(storePathHash));
  }
  await cache.prefetchOver();
  for (const path of paths.toReversed()) {
    await (await cache.get(path)).bytes();
    await cache.prefetchOver();
  }
  const nars = (await scrape(cache)).nonZero("larder_cache_requests_total");
  assert.equal(narRequests(upstream), objects.length);
  assert.ok((nars[of("nar", "prefetched")] ?? 0) > 0.9 * objects.length, JSON.stringify(nars));
});

Deno.test("prefetch: a NAR that failed is fetched for the client that wants it", async () => {
  const object = makeStoreObject({ name: "small" });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  const held = Promise.withResolvers<void>();
  let times = 0;
  upstream.breakNar(async (answer, exchange) => {
    if (++times > 1) return answer;
    await held.promise;
    return status(404)(answer, exchange);
  });
  const path = await cache.narPath(object.storePathHash);
  await upstream.requested(/^\/nar\//);
  const asked = cache.get(path);
  await cache.narinfo(object.storePathHash);
  held.resolve();
  assert.equal((await asked).status, 200);
  assertSameBytes(await (await asked).bytes(), (await upstream.narFileOf(object)).bytes);
});

Deno.test("prefetch: an upstream without its NARs gets 50 requests at most", async () => {
  const objects = Array.from({ length: 200 }, (_, seed) => makeStoreObject({ name: "x", seed }));
  await using upstream = await fakeUpstream({ objects, stored: true });
  upstream.breakNar(status(404));
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  for (const { storePathHash } of objects) {
    assert.equal((await cache.get(`/${storePathHash}.narinfo`)).status, 200);
    await cache.prefetchOver();
  }
  assert.ok(narRequests(upstream) <= 50, `${narRequests(upstream)} requests for NARs`);
});

Deno.test("prefetch: a GET behind HEADs has its NAR fetched ahead, and no HEAD has", async () => {
  const objects = Array.from({ length: 30 }, (_, seed) => makeStoreObject({ name: "x", seed }));
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  // As `nix copy` does.
  for (const method of ["HEAD", "GET"]) {
    assert.equal(narRequests(upstream), 0);
    for (const { storePathHash } of objects) {
      await xCacheOf(cache.request(method, `/${storePathHash}.narinfo`));
    }
    await cache.prefetchOver();
  }
  assert.equal(narRequests(upstream), objects.length);
  for (const object of objects) assert.deepEqual(await pull(cache, object), ["HIT", "HIT"]);
  assert.equal(narRequests(upstream), objects.length);
});

Deno.test("prefetch: a hit leads to a NAR that was removed, and to its references", async () => {
  const [leaf, top] = chain(2);
  assert.ok(leaf && top);
  await using upstream = await fakeUpstream({ objects: [leaf, top], stored: true });
  let nowMs = Date.now();
  const options = { upstreams: [upstream], allowDelete: true, nowMs: () => nowMs };
  await using cache = await prefetchingCache(options);
  const path = await cache.narPath(top.storePathHash);
  await cache.prefetchOver();
  for (const gone of [path, `/${leaf.storePathHash}.narinfo`]) {
    assert.equal((await cache.request("DELETE", gone)).status, 200);
  }
  cache.expirePrefetched();
  nowMs += 61_000;
  cache.expirePrefetched();
  for (let times = 0; times < 3; times++) {
    assert.equal(await xCacheOf(cache.get(`/${top.storePathHash}.narinfo`)), "HIT");
    await cache.prefetchOver();
  }
  assert.equal(narRequests(upstream), 2);
  assert.equal(await xCacheOf(cache.get(path)), "HIT");
  assert.equal(upstream.count(`/${leaf.storePathHash}.narinfo`), 2);
});

Deno.test("prefetch: a pull asks the upstream once for each narinfo and NAR", async () => {
  const objects = fan(60);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await prefetchingCache({ upstreams: [upstream] });
  await Promise.all(objects.toReversed().map((object) => pull(cache, object)));
  await cache.prefetchOver();
  for (const { storePathHash } of objects) {
    assert.equal(upstream.count(`/${storePathHash}.narinfo`), 1);
  }
  assert.equal(narRequests(upstream), objects.length);
});

Deno.test("prefetch: HEAD of a NAR is no use of it, and pays for no other", async () => {
  const objects = fan(60);
  await using upstream = await fakeUpstream({ objects, stored: true });
  let nowMs = Date.now();
  await using cache = await prefetchingCache({ upstreams: [upstream], nowMs: () => nowMs });
  for (const { storePathHash } of objects.toReversed()) await cache.narinfo(storePathHash);
  await cache.prefetchOver();
  const names = await cache.narNames();
  for (const name of names) {
    assert.equal(await xCacheOf(cache.head(`/nar/${name}`)), "HIT");
  }
  await cache.prefetchOver();
  assert.equal(narRequests(upstream), 50);
  assert.equal((await prefetched(cache))[of("nar", "used")], undefined);
  // The GET behind it is the first use.
  assert.equal(await xCacheOf(cache.get(`/nar/${names[0]}`)), "HIT");
  await cache.prefetchOver();
  assert.equal(narRequests(upstream), 54);
  assert.equal((await prefetched(cache))[of("nar", "used")], 1);
  nowMs += TEN_MINUTES_MS + 1;
  cache.expirePrefetched();
  await cache.prefetchOver();
  assert.equal((await prefetched(cache))[of("nar", "wasted")], 53);
});
