import assert from "node:assert/strict";
import { parsePublicKey } from "../../src/nix/signature.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { cutAfter, firstTimes } from "../support/faults.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { TestCache } from "../support/test_cache.ts";
import { TlsFront } from "../support/tls_front.ts";

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

Deno.test("redirect: the rest of a NAR comes through it as well", async () => {
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

Deno.test("redirect: credentials that have left their host do not come back", async () => {
  await using upstream = await fakeUpstream(stored);
  await using other = await fakeUpstream({ stored: true });
  const back = ({ path }: { readonly path: string }) => redirect(`${upstream.url}/back${path}`);
  other.onRequest = back;
  upstream.onRequest = ({ path }) => (
    path.startsWith("/back") ? undefined : redirect(`${other.url}${path}`)
  );
  await using cache = await openCache(upstream, upstream);
  await (await cache.get(PATH)).text();
  const seen = upstream.matching(/^\/back.*narinfo/).map(({ headers }) =>
    headers.get("authorization")
  );
  assert.deepEqual(seen, [null]);
});

for (const host of ["10.1.2.3", "169.254.169.254", "[fd00::1]", "[::ffff:192.168.1.1]"]) {
  Deno.test(`redirect: an upstream on loopback does not lead to ${host}`, async () => {
    await using upstream = await fakeUpstream(stored);
    upstream.onRequest = ({ path }) => redirect(`http://${host}${path}`);
    await using cache = await TestCache.open({ upstreams: [upstream] });
    assert.equal((await cache.get(PATH)).status, 404);
    const line = cache.log.find(({ detail }) => detail !== undefined);
    assert.match(String(line?.["detail"]), /redirect: it leads to a (private|link-local)/);
    assert.equal(line?.["reason"], "garbage");
  });
}

for (const location of ["file:///etc/passwd", "data:text/plain,x", "ftp://127.0.0.1/", "http://"]) {
  Deno.test(`redirect: ${location} is not followed`, async () => {
    await using upstream = await fakeUpstream(stored);
    upstream.onRequest = () => redirect(location);
    await using cache = await TestCache.open({ upstreams: [upstream] });
    assert.equal((await cache.get(PATH)).status, 404);
    assert.ok(cache.log.some(({ detail }) => /Cannot follow redirect/.test(String(detail))));
  });
}

testUnless(programsMissing("openssl"), "redirect: none leads from https to http", async () => {
  await using target = await fakeUpstream(stored);
  await using upstream = await fakeUpstream({ stored: true });
  using front = new TlsFront(upstream.port);
  upstream.onRequest = ({ path }) => redirect(`${target.url}${path}`);
  await using cache = await TestCache.open({
    upstreams: [front.url],
    trustedKeys: [parsePublicKey(target.publicKey)],
    caCertificates: [Deno.readTextFileSync(front.caFile)],
  });
  assert.equal((await cache.get(PATH)).status, 404);
  assert.deepEqual(target.requests, []);
  assert.ok(cache.log.some(({ detail }) => /from https to http/.test(String(detail))));
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
