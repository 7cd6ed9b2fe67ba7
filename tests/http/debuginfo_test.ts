import assert from "node:assert/strict";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { corruptByteAt } from "../support/faults.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-debug-1.0", size: 2_000_000 });
const DEBUGINFO = "/debuginfo/bde350fa1f1bbde3649bfce3ae143b87683d8bf9";

/** An upstream whose debuginfo leads to the NAR of `object`. */
async function upstreamWithDebuginfo(): Promise<FakeUpstream> {
  const documents: Record<string, string> = {};
  const upstream = await fakeUpstream({ objects: [object], stored: true, documents });
  const archive = `../${await upstream.narUrlOf(object)}`;
  documents[DEBUGINFO] = JSON.stringify({ archive, member: "lib/debug/x.debug" });
  return upstream;
}

async function archiveIn(cache: TestCache): Promise<string> {
  const { archive } = await (await cache.get(DEBUGINFO)).json();
  return new URL(archive, `http://cache.test${DEBUGINFO}`).pathname;
}

Deno.test("debuginfo: its archive is served without a narinfo request", async () => {
  await using upstream = await upstreamWithDebuginfo();
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await archiveIn(cache);
  const { bytes } = await upstream.narFileOf(object);
  await using server = cache.listen();

  const [head, get] = await Promise.all(
    ["HEAD", "GET"].map((method) => fetch(server.url + path, { method })),
  );

  assertSameBytes(await get?.bytes(), bytes);
  assert.deepEqual([head?.status, head?.headers.get("etag")], [200, get?.headers.get("etag")]);
  assert.equal(head?.headers.get("content-length"), String(bytes.length));
  const range = { range: "bytes=1000000-" };
  const rest = await (await fetch(server.url + path, { headers: range })).bytes();
  assert.deepEqual(rest, bytes.subarray(1_000_000));
  assert.deepEqual(await cache.narNames(), []);
});

Deno.test("debuginfo: an archive that is not the file of its name breaks off", async () => {
  await using upstream = await upstreamWithDebuginfo();
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await archiveIn(cache);
  upstream.breakNar(corruptByteAt(1_500_000));
  await using server = cache.listen();
  assert.equal((await rawRequest(server.port, requestText("GET", path))).complete, false);
});

Deno.test("debuginfo: an archive is kept after a request of its narinfo", async () => {
  await using upstream = await upstreamWithDebuginfo();
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await archiveIn(cache);
  assert.equal(await cache.narPath(object.storePathHash), path);
  await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  await upstream.stop();
  const hit = await cache.get(path);
  assert.deepEqual([hit.status, hit.headers.get("x-cache")], [200, "HIT"]);
  await hit.body?.cancel();
});

Deno.test("debuginfo: an archive elsewhere, or gone, is a clean 404", async () => {
  await using upstream = await upstreamWithDebuginfo();
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const name = `${"0".repeat(52)}.nar.xz`;
  assert.equal((await cache.get(`/nar/${name}`)).status, 404);
  const path = await archiveIn(cache);
  upstream.remove(object);
  for (const method of ["GET", "HEAD"]) {
    assert.equal((await cache.request(method, path)).status, 404);
  }
  await upstream.stop();
  assert.equal((await cache.get(path)).status, 404);
  assert.equal((await cache.get(DEBUGINFO)).status, 200);
});
