import assert from "node:assert/strict";
import { parsePublicKey } from "../../src/nix/signature.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { corruptByteAt, status } from "../support/faults.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 1_500_000 });
const small = makeStoreObject({ name: "small-1.0", size: 5_000 });
const UNKNOWN = `/nar/${"0".repeat(52)}.nar.xz`;

const pathOf = async (upstream: FakeUpstream, of = object) => `/${await upstream.narUrlOf(of)}`;

for (const  of of[object, small]) {
  Deno.test(`unnamed nar: ${of.baseName} is passed through without its narinfo, not kept`, async () => {
    await using upstream = await fakeUpstream({ objects: [of], stored: true });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    const { bytes } = await upstream.narFileOf(of);
    const path = await pathOf(upstream, of);

    const head = await cache.head(path);
    const get = await cache.get(path);

    assertSameBytes(await get.bytes(), bytes);
    assert.deepEqual([head.status, get.status], [200, 200]);
    for (const name of ["content-length", "etag", "accept-ranges", "cache-control", "x-cache"]) {
      assert.equal(head.headers.get(name), get.headers.get(name), name);
    }
    assert.equal(get.headers.get("content-length"), String(bytes.length));
    const range = await cache.get(path, { range: "bytes=1000-" });
    assert.equal(range.status, 206);
    assertSameBytes(await range.bytes(), bytes.subarray(1_000));
    await cache.downloadsOver();
    assert.deepEqual(await cache.narNames(), []);
    assert.equal(upstream.count(/\.narinfo$/), 0);

    // The narinfo vouches for it.
    assert.equal(await cache.narPath(of.storePathHash), path);
    await (await cache.get(path)).bytes();
    await cache.downloadsOver();
    const hit = await cache.get(path);
    assert.equal(hit.headers.get("x-cache"), "HIT");
    await hit.bytes();
  });
}

Deno.test("unnamed nar: wrong bytes are a broken transfer, and the last ones do not leave", async () => {
  await using upstream = await fakeUpstream({ objects: [object, small], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const [path, smallPath] = [await pathOf(upstream), await pathOf(upstream, small)];
  upstream.breakNar(corruptByteAt(1_000));
  await using server = cache.listen();

  assert.equal((await rawRequest(server.port, requestText("GET", path))).complete, false);
  assert.equal((await cache.get(smallPath)).status, 404);
});

Deno.test("unnamed nar: the next upstream sends what the first has wrong, or lacks", async () => {
  await using wrong = await fakeUpstream({ objects: [small], stored: true, priority: 1 });
  await using empty = await fakeUpstream({ priority: 2 });
  await using right = await fakeUpstream({ objects: [small], stored: true, priority: 3 });
  wrong.breakNar(corruptByteAt(1_000));
  await using cache = await TestCache.open({ upstreams: [wrong, empty, right] });

  const answer = await cache.get(await pathOf(right, small));

  assertSameBytes(await answer.bytes(), (await right.narFileOf(small)).bytes);
});

for (const code of [404, 500]) {
  Deno.test(`unnamed nar: without a narinfo, another upstream sends what one has as ${code}`, async () => {
    await using first = await fakeUpstream({ objects: [small], stored: true, priority: 1 });
    await using second = await fakeUpstream({ objects: [small], stored: true, priority: 2 });
    await using cache = await TestCache.open({ upstreams: [first, second], allowDelete: true });
    const path = await cache.narPath(small.storePathHash);
    await cache.request("DELETE", `/${small.storePathHash}.narinfo`);
    first.breakNar(status(code));

    const answer = await cache.get(path);

    assertSameBytes(await answer.bytes(), (await second.narFileOf(small)).bytes);
  });
}

Deno.test("unnamed nar: one that no upstream has is remembered as absent, a failure is not", async () => {
  await using upstream = await fakeUpstream();
  await using failing = await fakeUpstream();
  await using cache = await TestCache.open({ upstreams: [upstream, failing] });
  const origins = [];
  for (const method of ["GET", "HEAD", "GET"]) {
    const { status, headers } = await cache.request(method, UNKNOWN);
    assert.equal(status, 404);
    origins.push(headers.get("x-cache"));
  }
  assert.deepEqual(origins, ["MISS", "HIT", "HIT"]);
  assert.deepEqual([upstream.count(UNKNOWN), failing.count(UNKNOWN)], [1, 1]);

  const other = UNKNOWN.replaceAll("0", "1");
  failing.onRequest = () => new Response(null, { status: 500 });
  const before = failing.count(other);
  await cache.get(other);
  const once = failing.count(other) - before;
  await cache.get(other);
  assert.equal(failing.count(other) - before, 2 * once);
});

Deno.test("unnamed nar: clients that ask at once share the lookup of an absent one", async () => {
  await using upstream = await fakeUpstream();
  const held = Promise.withResolvers<void>();
  upstream.onRequest = async ({ path }) => {
    if (path === UNKNOWN) await held.promise;
    return undefined;
  };
  await using cache = await TestCache.open({ upstreams: [upstream], negativeTtlMs: 0 });
  const answers = [1, 2, 3].map(() => cache.get(UNKNOWN));
  await upstream.requested(UNKNOWN);
  held.resolve();
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  assert.deepEqual(statuses, [404, 404, 404]);
  assert.equal(upstream.count(UNKNOWN), 1);
});

for (const dialect of ["nix-serve", "harmonia"] as const) {
  Deno.test(`unnamed nar: a name of ${dialect} leads to the narinfo`, async () => {
    await using upstream = await fakeUpstream({ dialect, objects: [small], compression: "none" });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    const path = dialect === "nix-serve"
      ? `/nar/${small.storePathHash}-${small.narHash}.nar`
      : `/nar/${small.narHash}.nar?hash=${small.storePathHash}`;

    const head = await cache.head(path);
    const answer = await cache.get(path);

    assertSameBytes(await answer.bytes(), small.nar);
    assert.equal(head.status, 200);
    assert.equal(upstream.count(`/${small.storePathHash}.narinfo`), 1);
    await cache.downloadsOver();
    const hit = await cache.get(path);
    assert.equal(hit.headers.get("x-cache"), "HIT");
    await hit.bytes();
  });
}

Deno.test("unnamed nar: a store path of another NAR is no answer", async () => {
  await using upstream = await fakeUpstream({ objects: [small], compression: "none" });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = `/nar/${small.storePathHash}-${object.narHash}.nar`;
  assert.equal((await cache.get(path)).status, 404);
});

Deno.test("unnamed nar: a row's file comes from an upstream that is new in the settings", async () => {
  await using old = await fakeUpstream({ objects: [small], stored: true });
  await using mirror = await fakeUpstream({ objects: [small], stored: true });
  const trustedKeys = [old, mirror].map(({ publicKey }) => parsePublicKey(publicKey));
  await using cache = await TestCache.open({ upstreams: [mirror], trustedKeys });
  const path = await cache.narPath(small.storePathHash);
  await cache.metadata.apply([{ kind: "remove-narinfo", storePathHash: small.storePathHash }]);
  await using moved = await TestCache.open({
    upstreams: [old],
    trustedKeys,
    metadata: cache.metadata,
  });

  const answer = await moved.get(path);
  assertSameBytes(await answer.bytes(), (await old.narFileOf(small)).bytes);
});
