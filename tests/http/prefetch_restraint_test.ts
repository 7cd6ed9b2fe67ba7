import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { firstTimes, Gate, status } from "../support/faults.ts";
import {
  fan,
  narRequests,
  of,
  prefetched,
  prefetchingCache,
  pull,
  xCacheOf,
} from "../support/prefetching.ts";
import { chain, makeStoreObject } from "../support/store_object.ts";

const KIB = 1024;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

for (const code of [429, 503]) {
  Deno.test(`prefetch: nothing from an upstream that answered ${code} of late`, async () => {
    const objects = fan(10);
    const top = objects.at(-1);
    assert.ok(top);
    await using upstream = await fakeUpstream({ objects, stored: true });
    await using cache = await prefetchingCache({ upstreams: [upstream] });
    upstream.breakNarinfo(firstTimes(1, status(code)), top);
    assert.equal((await cache.get(`/${top.storePathHash}.narinfo`)).status, 200);
    await cache.prefetchOver();
    assert.equal(upstream.count(/\.narinfo$/), 2);
    assert.equal(narRequests(upstream), 0);
    assert.deepEqual(await prefetched(cache), {
      [of("narinfo", "skipped")]: 10,
      [of("nar", "skipped")]: 1,
    });
  });
}

for (const code of [429, 503]) {
  Deno.test(`prefetch: a narinfo answered by ${code} is not requested again`, async () => {
    const objects = fan(200);
    const top = objects.at(-1);
    assert.ok(top);
    await using upstream = await fakeUpstream({ objects, stored: true });
    await using cache = await prefetchingCache({ upstreams: [upstream] });
    const held = Promise.withResolvers<void>();
    let narinfos = 0;
    upstream.breakNarinfo(async (answer, exchange) => {
      if (++narinfos === 1) return answer;
      await held.promise;
      return await status(code)(answer, exchange);
    });
    await cache.get(`/${top.storePathHash}.narinfo`);
    await upstream.requested(/\.narinfo$/, 1 + 64);
    held.resolve();
    await cache.prefetchOver();
    assert.equal(upstream.count(/\.narinfo$/), 1 + 64);
  });
}

for (const code of [429, 503]) {
  Deno.test(`prefetch: a NAR answered by ${code} is not requested again`, async () => {
    const objects = fan(40);
    await using upstream = await fakeUpstream({ objects, stored: true });
    await using cache = await prefetchingCache({ upstreams: [upstream] });
    const held = Promise.withResolvers<void>();
    upstream.breakNar(async (answer, exchange) => {
      await held.promise;
      return await status(code)(answer, exchange);
    });
    for (const { storePathHash } of objects) await cache.narinfo(storePathHash);
    await upstream.requested(/^\/nar\//, 16);
    held.resolve();
    await cache.prefetchOver();
    assert.equal(narRequests(upstream), 16);
  });
}

Deno.test("prefetch: nothing while an overloaded upstream is preferred", async () => {
  const [leaf, top] = chain(2);
  assert.ok(leaf && top);
  await using busy = await fakeUpstream({ objects: [leaf], stored: true, priority: 10 });
  await using spare = await fakeUpstream({ objects: [leaf, top], stored: true, priority: 20 });
  await using cache = await prefetchingCache({ upstreams: [busy, spare] });
  busy.breakNarinfo(firstTimes(1, status(429)), leaf);
  busy.onRequest = (request) =>
    request.path.includes(top.storePathHash) ? new Response(null, { status: 429 }) : undefined;
  await cache.get(`/${top.storePathHash}.narinfo`);
  await cache.prefetchOver();
  assert.equal(spare.count(`/${leaf.storePathHash}.narinfo`), 0);
  assert.equal(busy.count(`/${leaf.storePathHash}.narinfo`), 0);
});

Deno.test("prefetch: a client's NARs pay for none that another one left a minute ago", async () => {
  const [narinfosOnly, pulled] = [fan(200, 1), fan(20, 2)];
  await using upstream = await fakeUpstream({
    objects: [...narinfosOnly, ...pulled],
    stored: true,
  });
  let nowMs = Date.now();
  await using cache = await prefetchingCache({ upstreams: [upstream], nowMs: () => nowMs });
  for (const { storePathHash } of narinfosOnly) await cache.narinfo(storePathHash);
  await cache.prefetchOver();
  assert.equal(narRequests(upstream), 50);
  nowMs += MINUTE_MS + 1;
  cache.expirePrefetched();
  for (const object of pulled) await pull(cache, object);
  await cache.prefetchOver();
  assert.equal(narRequests(upstream), 50 + pulled.length);
  assert.equal((await prefetched(cache))[of("nar", "skipped")], narinfosOnly.length - 50);
});

Deno.test("prefetch: no NAR takes the place of one that was used within the hour", async () => {
  const objects = [1, 2, 3].map((seed) => makeStoreObject({ name: "x", size: 100 * KIB, seed }));
  const [first, second, third] = objects;
  assert.ok(first && second && third);
  await using upstream = await fakeUpstream({ objects, stored: true });
  let nowMs = Date.now();
  const limitBytes = 250 * KIB;
  const options = { upstreams: [upstream], limitBytes, nowMs: () => nowMs };
  await using cache = await prefetchingCache(options);
  for (const object of [first, second]) {
    await pull(cache, object);
    await cache.downloadsOver();
  }
  nowMs += HOUR_MS / 2;
  await cache.narinfo(third.storePathHash);
  await cache.prefetchOver();
  assert.equal((await prefetched(cache))[of("nar", "skipped")], 1);
  assert.equal((await cache.narNames()).length, 2);
  // A client's request makes room, no matter who used which file.
  assert.equal(await xCacheOf(cache.get(await cache.narPath(third.storePathHash))), "MISS");
  await cache.downloadsOver();
  assert.equal((await prefetched(cache))[of("nar", "skipped")], 1);
});

Deno.test("prefetch: a NAR takes the place of one unused for an hour", async () => {
  const objects = [1, 2, 3].map((seed) => makeStoreObject({ name: "x", size: 100 * KIB, seed }));
  const [first, second, third] = objects;
  assert.ok(first && second && third);
  await using upstream = await fakeUpstream({ objects, stored: true });
  let nowMs = Date.now();
  const limitBytes = 250 * KIB;
  await using cache = await prefetchingCache({
    upstreams: [upstream],
    limitBytes,
    nowMs: () => nowMs,
  });
  await pull(cache, first);
  await cache.downloadsOver();
  nowMs += HOUR_MS / 2;
  await pull(cache, second);
  await cache.downloadsOver();
  nowMs += HOUR_MS / 2 + 60_000;
  const path = await cache.narPath(third.storePathHash);
  await cache.prefetchOver();
  assert.equal(await xCacheOf(cache.get(path)), "HIT");
  assert.equal(await xCacheOf(cache.get(await cache.narPath(second.storePathHash))), "HIT");
  assert.ok(cache.bytesOnDisk() <= limitBytes);
  assert.deepEqual([...cache.logged("warn"), ...cache.logged("error")], []);
});

Deno.test("prefetch: eviction takes unrequested entries first", async () => {
  const [leaf, top] = chain(2);
  assert.ok(leaf && top);
  const old = makeStoreObject({ name: "old", size: 100 * KIB });
  await using upstream = await fakeUpstream({ objects: [leaf, top, old], stored: true });
  let nowMs = Date.now();
  await using cache = await prefetchingCache({
    upstreams: [upstream],
    limitBytes: 1 << 20,
    nowMs: () => nowMs,
  });
  await pull(cache, old);
  await cache.downloadsOver();
  nowMs += HOUR_MS;
  await cache.narinfo(top.storePathHash);
  await cache.prefetchOver();
  assert.ok(await cache.metadata.findNarinfo(leaf.storePathHash));
  const order = { targetBytes: 100 * KIB, dryRun: false };
  await cache.space.collect(order, { progress: () => undefined, isWanted: () => true });
  // It goes along with the first entry that is evicted.
  assert.equal(await cache.metadata.findNarinfo(leaf.storePathHash), undefined);
  assert.ok(await cache.metadata.findNarinfo(top.storePathHash));
});

Deno.test("prefetch: a shutdown waits for no NAR that no client waits for", async () => {
  const object = makeStoreObject({ name: "small", size: 10_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  {
    await using cache = await prefetchingCache({ upstreams: [upstream], timeoutMs: 60_000 });
    await cache.narinfo(object.storePathHash);
    await gate.reached(0);
    cache.stopping();
    await cache.downloadsOver();
    assert.equal(cache.growingFiles().length, 1);
  }
  gate.open();
});
