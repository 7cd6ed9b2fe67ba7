import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { chain } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

Deno.test("pinned closures: later paths count as stored, absent ones as missing", async () => {
  const objects = chain(3);
  const [leaf, middle, root] = objects;
  assert.ok(leaf && middle && root);
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const counts = async () => {
    const [closure] = await (await cache.get("/pins/closures")).json();
    return [closure.stored, closure.missing];
  };

  assert.equal(await (await cache.get("/pins/closures")).text(), "[]");
  await cache.narinfo(root.storePathHash);
  await cache.request("POST", `/pin/${root.storePathHash}.narinfo`);
  assert.deepEqual(await counts(), [0, 2], "its narinfo alone is not the path");

  for (const { storePathHash } of [root, middle]) {
    await (await cache.get(await cache.narPath(storePathHash))).bytes();
  }
  await cache.downloadsOver();
  await eventually("both NARs are kept", async () => (await counts())[0] === 2);
  const answer = await cache.get("/pins/closures");
  assert.equal(answer.headers.get("content-type"), "application/json");
  const [closure] = await answer.json();
  const { pinned_at, bytes, own_bytes, ...rest } = closure;
  assert.equal(own_bytes, bytes, "no other pin holds any of it");
  assert.deepEqual(rest, {
    ...{ root: root.storePathHash, name: "link-2", stored: 2, missing: 1 },
    ...{ keep_complete: false, complete: null, look: null },
  });
  assert.match(pinned_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const files = await Promise.all([root, middle].map((object) => upstream.narFileOf(object)));
  assert.equal(bytes, files.reduce((sum, file) => sum + file.bytes.length, 0));
  assert.deepEqual(await (await cache.get("/pins")).json(), [root.storePathHash]);
});

Deno.test("pinned closures: HEAD is GET without its body, another method is 405", async () => {
  await using cache = await TestCache.open({ upstreams: [] });

  const head = await cache.head("/pins/closures");
  assert.deepEqual([head.status, head.headers.get("content-length")], [200, "2"]);
  const post = await cache.request("POST", "/pins/closures");
  assert.deepEqual([post.status, post.headers.get("allow")], [405, "GET, HEAD"]);
});
