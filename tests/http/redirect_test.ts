import assert from "node:assert/strict";
import { parsePublicKey } from "../../src/nix/signature.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { cutAfter, firstTimes } from "../support/faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 300_000 });
const PATH = `/${object.storePathHash}.narinfo`;
const stored = { objects: [object], stored: true } as const;
const LOGIN = "Basic bWU6c2VjcmV0";

Deno.test("redirect: it is followed, and credentials are not taken to another host", async () => {
  await using target = await fakeUpstream(stored);
  await using upstream = await fakeUpstream({ stored: true });
  upstream.onRequest = ({ path }) => redirect(`${target.url}${path}`);
  await using cache = await openCache(upstream, target);

  const body = await (await cache.get(await cache.narPath(object.storePathHash))).bytes();

  assert.deepEqual(body, (await target.narFileOf(object)).bytes);
  for (const { headers } of upstream.requests) assert.equal(headers.get("authorization"), LOGIN);
  assert.deepEqual(pathsOf(target), pathsOf(upstream));
  for (const { headers } of target.requests) assert.equal(headers.get("authorization"), null);
});

Deno.test("redirect: on the same host the credentials go along", async () => {
  await using upstream = await fakeUpstream(stored);
  await using served = await fakeUpstream(stored);
  upstream.onRequest = async ({ path }) => {
    if (!path.startsWith("/moved")) return redirect(`/moved${path}`);
    const answer = await fetch(served.url + path.slice("/moved".length));
    return new Response(await answer.bytes(), { status: answer.status });
  };
  await using cache = await openCache(upstream, served);
  const body = await (await cache.get(await cache.narPath(object.storePathHash))).bytes();
  assert.deepEqual(body, (await served.narFileOf(object)).bytes);
  assert.ok(upstream.count(/^\/moved/) >= 2);
  for (const { headers } of upstream.requests) assert.equal(headers.get("authorization"), LOGIN);
});

Deno.test("redirect: the rest of a NAR is asked for through it as well", async () => {
  await using target = await fakeUpstream(stored);
  target.breakNar(firstTimes(1, cutAfter(100_000)));
  await using upstream = await fakeUpstream({ stored: true });
  upstream.onRequest = ({ path }) => redirect(`${target.url}${path}`);
  await using cache = await openCache(upstream, target);
  const body = await (await cache.get(await cache.narPath(object.storePathHash))).bytes();
  assert.deepEqual(body, (await target.narFileOf(object)).bytes);
  const ranges = target.matching(/^\/nar\//).map(({ headers }) => headers.get("range"));
  assert.deepEqual(ranges, [null, "bytes=100000-"]);
});

Deno.test("redirect: one without an end is 404, and bounded", async () => {
  await using upstream = await fakeUpstream(stored);
  upstream.onRequest = ({ path }) => path.endsWith(".narinfo") ? redirect(path) : undefined;
  await using cache = await TestCache.open({ upstreams: [upstream] });
  assert.equal((await cache.get(PATH)).status, 404);
  assert.ok(upstream.count(PATH) <= 21, `${upstream.count(PATH)} requests`);
});

function redirect(location: string): Response {
  return new Response(null, { status: 302, headers: { location, "content-length": "0" } });
}

/** A cache that knows a login for the first upstream, and trusts the second one's key. */
function openCache(upstream: FakeUpstream, signer: FakeUpstream): Promise<TestCache> {
  const trustedKeys = [parsePublicKey(signer.publicKey)];
  return TestCache.open({ upstreams: [upstream], trustedKeys, authorization: LOGIN });
}

function pathsOf(upstream: FakeUpstream): readonly string[] {
  return [...new Set(upstream.requests.map(({ path }) => path))].toSorted();
}
