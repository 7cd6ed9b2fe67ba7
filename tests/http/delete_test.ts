import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "removable", size: 50_000 });
const HASH = object.storePathHash;

Deno.test("delete: a DELETE that is not allowed is 405, and removes nothing", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const narPath = await pull(cache);
  for (const path of [`/${HASH}.narinfo`, narPath]) {
    const refused = await cache.request("DELETE", path);
    assert.deepEqual([refused.status, refused.headers.get("allow")], [405, "GET, HEAD"]);
  }
  assert.equal((await cache.get(narPath)).headers.get("x-cache"), "HIT");
});

Deno.test("delete: a narinfo goes with its NAR file, and comes back by a request", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await opened(upstream);
  const narPath = await pull(cache);

  const removed = await cache.request("DELETE", `/${HASH}.narinfo`);

  assert.deepEqual([removed.status, await removed.text()], [200, `removed ${HASH}\n`]);
  // An object of a bucket stays a second for readers that have found it.
  await eventually("it is gone", () => cache.space.budget.usedBytes === 0);
  assert.deepEqual(await cache.narNames(), []);
  assert.equal((await cache.request("DELETE", `/${HASH}.narinfo`)).status, 404);
  assert.equal(await pull(cache), narPath);
  assert.equal(upstream.count(/narinfo$/), 2);
});

Deno.test("delete: a NAR file goes, and its narinfo leads to it again", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await opened(upstream);
  const narPath = await pull(cache);

  assert.equal((await cache.request("DELETE", narPath)).status, 200);
  assert.equal((await cache.request("DELETE", narPath)).status, 404);

  assert.equal(cache.space.budget.usedBytes, 0);
  const again = await cache.get(narPath);
  assert.equal(again.headers.get("x-cache"), "MISS");
  await again.bytes();
});

Deno.test("delete: a pinned path can be deleted, and is protected once it comes back", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await opened(upstream);
  await pull(cache);
  assert.equal((await cache.request("POST", `/pin/${HASH}.narinfo`)).status, 200);

  assert.equal((await cache.request("DELETE", `/${HASH}.narinfo`)).status, 200);

  assert.deepEqual(await (await cache.get("/pins")).json(), [HASH]);
  await pull(cache);
  await cache.space.refresh();
  assert.ok(cache.space.budget.pinnedBytes > 0);
});

Deno.test("delete: names that are none are 404, whatever they try", async () => {
  await using upstream = await fakeUpstream({ objects: [], stored: true });
  await using cache = await opened(upstream);
  for (
    const path of ["/x.narinfo", "/nar/x", "/nar/..%2fdb.sqlite", `/${"e".repeat(32)}.narinfo`]
  ) {
    const { status } = await cache.request("DELETE", path);
    assert.ok(status === 404 || status === 400, path);
  }
});

function opened(upstream: FakeUpstream): Promise<TestCache> {
  return TestCache.open({ upstreams: [upstream], allowDelete: true });
}

/** Has the object kept; resolves to our path of its NAR. */
async function pull(cache: TestCache): Promise<string> {
  const narPath = await cache.narPath(HASH);
  await (await cache.get(narPath)).bytes();
  await cache.downloadsOver();
  await cache.space.refresh();
  return narPath;
}
