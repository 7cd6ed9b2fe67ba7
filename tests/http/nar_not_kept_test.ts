import assert from "node:assert/strict";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { scrape } from "../support/scrape.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const SIZE = 100_000;
const COUNTED = 'larder_nar_not_kept_total{reason="no_room"}';

Deno.test("not kept: beside full pins clients get the right bytes; one line says so", async () => {
  const [pinned, other, ...others] = objectsOf(6);
  assert.ok(pinned && other);
  await using upstream = await fakeUpstream({ objects: [pinned, other, ...others], stored: true });
  const limitBytes = SIZE * 1.5;
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes });
  const pin = `/pin/${pinned.storePathHash}.narinfo`;
  await pull(cache, upstream, [pinned]);
  assert.equal((await cache.request("POST", pin)).status, 200);

  await pull(cache, upstream, others);
  await pull(cache, upstream, others);
  assert.equal(warnings(cache).length, 1);
  assert.equal((await scrape(cache)).value(COUNTED), 2 * others.length);

  assert.equal((await cache.request("DELETE", pin)).status, 200);
  await pull(cache, upstream, [other]);
  assert.deepEqual(
    cache.logged("info").filter(({ msg }) => msg === "there is room for nars again").length,
    1,
  );

  assert.equal((await cache.request("POST", `/pin/${other.storePathHash}.narinfo`)).status, 200);
  await pull(cache, upstream, others);
  assert.equal(warnings(cache).length, 2);
});

Deno.test("not kept: after a large NAR that does not fit, a smaller one is said, too", async () => {
  const large = makeStoreObject({ name: "large", size: 3 * SIZE });
  const small = makeStoreObject({ name: "small", size: 2 * SIZE });
  await using upstream = await fakeUpstream({ objects: [large, small], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], limitBytes: SIZE });
  await pull(cache, upstream, [large, large, small, small, large]);
  const [first, second, ...more] = warnings(cache).map(({ file_size }) => Number(file_size));
  assert.ok(first !== undefined && second !== undefined && second < first);
  assert.deepEqual(more, []);
});

function objectsOf(count: number): readonly StoreObject[] {
  return Array.from({ length: count }, (_, seed) => (
    makeStoreObject({ name: "thing", seed: seed + 1, size: SIZE })
  ));
}

function warnings(cache: TestCache) {
  return cache.logged("warn").filter(({ msg }) => msg === "nar not kept");
}

/** One after the other, each to its end: the client has the bytes of the upstream's file. */
async function pull(
  cache: TestCache,
  upstream: FakeUpstream,
  objects: readonly StoreObject[],
): Promise<void> {
  for (const object of objects) {
    const answer = await cache.get(await cache.narPath(object.storePathHash));
    assert.equal(answer.status, 200);
    assertSameBytes(await answer.bytes(), (await upstream.narFileOf(object)).bytes);
    await cache.downloadsOver();
  }
}
