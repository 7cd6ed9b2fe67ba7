import assert from "node:assert/strict";
import { parsePublicKey } from "../../src/nix/signature.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { cutAfter, dropped, type Fault, firstTimes, status } from "../support/faults.ts";
import { GoawayServer } from "../support/goaway_server.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { OwnCertificate } from "../support/tls_front.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 100_000 });
const PATH = `/${object.storePathHash}.narinfo`;
const stored = { objects: [object], stored: true } as const;

/**
 * Deno's fetch repeats a request by itself, once, after a kept connection broke: from 2.7.6 on
 * (measured), and no option turns it off. The connection of nix-cache-info is kept here.
 */
const [major = 0, minor = 0, patch = 0] = Deno.version.deno.split(".").map(Number);
const FETCH_REPEATS = major > 2 || minor > 7 || (minor === 7 && patch >= 6) ? 1 : 0;

/** Faults that are over at the next request. */
const PASSING: Readonly<Record<string, Fault>> = {
  "a reset before the headers": dropped(),
  "status 429 with Retry-After": status(429, { "retry-after": "0" }),
  "status 503 with Retry-After": status(503, { "retry-after": "0" }),
  "status 503 with a date that is over": status(503, {
    "retry-after": "Fri, 01 Jan 2010 00:00:00 GMT",
  }),
  "status 503 alone": status(503),
};

for (const [name, fault] of Object.entries(PASSING)) {
  Deno.test(`retry: after ${name} larder tries again, for narinfo and NAR`, async () => {
    await using upstream = await fakeUpstream(stored);
    upstream.breakNarinfo(firstTimes(2, fault));
    upstream.breakNar(firstTimes(2, fault));
    await using cache = await TestCache.open({ upstreams: [upstream] });
    const path = await cache.narPath(object.storePathHash);
    const nar = await cache.get(path);
    assertSameBytes(await nar.bytes(), (await upstream.narFileOf(object)).bytes);
    assert.deepEqual([upstream.count(PATH), upstream.count(/^\/nar\//)], [3, 3]);
  });

  Deno.test(`retry: ${name} without an end is 404, bounded, and no absence`, async () => {
    await using upstream = await fakeUpstream(stored);
    upstream.breakNarinfo(fault);
    await using cache = await TestCache.open({ upstreams: [upstream] });
    const answer = await cache.get(PATH);
    const repeats = name.startsWith("a reset") ? FETCH_REPEATS : 0;
    assert.deepEqual([answer.status, upstream.count(PATH)], [404, 3 + repeats]);
    const metrics = await (await cache.get("/metrics")).text();
    const counted = metrics.matchAll(
      /^larder_upstream_request_duration_seconds_count\{.* (\d+)$/gm,
    );
    assert.equal([...counted].reduce((sum, [, count]) => sum + Number(count), 0), 1);
    upstream.mend();
    assert.equal((await cache.get(PATH)).status, 200);
  });
}

Deno.test("retry: a narinfo that breaks off is requested again", async () => {
  await using upstream = await fakeUpstream(stored);
  upstream.breakNarinfo(firstTimes(1, cutAfter(100)));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  assert.equal((await cache.get(PATH)).status, 200);
});

Deno.test("retry: an upstream that sheds load halfway finishes the NAR later", async () => {
  await using upstream = await fakeUpstream(stored);
  upstream.breakNar(firstTimes(1, cutAfter(80_000)));
  let refusals = 0;
  upstream.onRequest = ({ headers }) =>
    headers.has("range") && refusals++ < 2
      ? new Response(null, { status: 503, headers: { "retry-after": "0" } })
      : undefined;
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const body = await (await cache.get(await cache.narPath(object.storePathHash))).bytes();
  assert.deepEqual(body, (await upstream.narFileOf(object)).bytes);
});

testUnless(
  programsMissing("openssl"),
  "retry: after GOAWAY the request is sent again",
  async () => {
    await using signer = await fakeUpstream(stored);
    using certificate = new OwnCertificate();
    const { pems } = certificate;
    await using server = new GoawayServer(pems, await signer.narinfoOf(object), 2);
    await using cache = await TestCache.open({
      upstreams: [server.url],
      priorities: [10],
      caCertificates: [pems.cert],
      trustedKeys: [parsePublicKey(signer.publicKey)],
    });
    assert.equal((await cache.get(PATH)).status, 200);
    assert.equal(server.goawayCount, 2);
  },
);
