import assert from "node:assert/strict";
import { parsePublicKey } from "../../src/nix/signature.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { cutAfter, dropped, firstTimes } from "../support/faults.ts";
import { GoawayServer } from "../support/goaway_server.ts";
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

Deno.test("retry: a reset before the headers is 404 after three requests", async () => {
  await using upstream = await fakeUpstream(stored);
  upstream.breakNarinfo(dropped());
  await using cache = await TestCache.open({ upstreams: [upstream] });
  assert.equal((await cache.get(PATH)).status, 404);
  assert.equal(upstream.count(PATH), 3 + FETCH_REPEATS);
});

Deno.test("retry: a narinfo that breaks off is requested again", async () => {
  await using upstream = await fakeUpstream(stored);
  upstream.breakNarinfo(firstTimes(1, cutAfter(100)));
  await using cache = await TestCache.open({ upstreams: [upstream] });
  assert.equal((await cache.get(PATH)).status, 200);
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
