import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { stallAfter } from "../support/faults.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const SIZE = 100_000;

Deno.test("early answer: a small NAR that is not kept begins with the bytes that are here", async () => {
  const thing = makeStoreObject({ name: "thing", size: SIZE });
  await using upstream = await fakeUpstream({ objects: [thing], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 1_000 });
  const goOn = Promise.withResolvers<void>();
  upstream.breakNar(stallAfter(10_000, goOn.promise));
  const answer = await cache.get(await cache.narPath(thing.storePathHash));
  goOn.resolve();
  assert.equal(answer.status, 200);
  assertSameBytes(await answer.bytes(), (await upstream.narFileOf(thing)).bytes);
  assert.equal(cache.logged("warn").filter(({ msg }) => msg === "nar not kept").length, 1);
});

Deno.test("early answer: a later failure of it is a broken transfer, no other file", async () => {
  const thing = makeStoreObject({ name: "thing", size: SIZE });
  await using upstream = await fakeUpstream({ objects: [thing], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: 1_000 });
  const path = await cache.narPath(thing.storePathHash);
  const goOn = Promise.withResolvers<void>();
  const flipped = (await upstream.narFileOf(thing)).bytes.slice();
  flipped[50_000] = (flipped[50_000] ?? 0) ^ 1;
  upstream.breakNar((answer, exchange) =>
    stallAfter(10_000, goOn.promise)({ ...answer, body: flipped }, exchange)
  );
  const answer = await cache.get(path);
  goOn.resolve();
  assert.equal(answer.status, 200);
  await assert.rejects(answer.bytes());
});

Deno.test("early answer: a part behind the bytes that are here begins before they come", async () => {
  const thing = makeStoreObject({ name: "thing", size: SIZE });
  await using upstream = await fakeUpstream({ objects: [thing], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const goOn = Promise.withResolvers<void>();
  upstream.breakNar(stallAfter(10_000, goOn.promise));
  const path = await cache.narPath(thing.storePathHash);
  const answer = await cache.get(path, { range: "bytes=50000-" });
  goOn.resolve();
  assert.equal(answer.status, 206);
  const { bytes } = await upstream.narFileOf(thing);
  assertSameBytes(await answer.bytes(), bytes.subarray(50_000));
});

Deno.test("early answer: an upstream that sends only headers keeps no other from answering", async () => {
  const thing = makeStoreObject({ name: "thing", size: SIZE });
  await using silent = await fakeUpstream({ objects: [thing], stored: true, priority: 10 });
  await using other = await fakeUpstream({ objects: [thing], stored: true });
  silent.breakNar(stallAfter(0));
  await using cache = await TestCache.open({
    upstreams: [silent, other],
    limits: { headerTimeoutMs: 300 },
  });
  const answer = await cache.get(await cache.narPath(thing.storePathHash));
  assert.equal(answer.status, 200);
  assertSameBytes(await answer.bytes(), (await other.narFileOf(thing)).bytes);
  assert.deepEqual(cache.logged("warn").filter(({ reason }) => reason === "stalled"), []);
});
