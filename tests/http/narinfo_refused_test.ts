import assert from "node:assert/strict";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { dropped, type Fault, stallAfter, status } from "../support/faults.ts";
import { badSignature, garbage, rewritten, unsigned } from "../support/narinfo_faults.ts";
import { scrape } from "../support/scrape.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const other = makeStoreObject({ name: "other-1.0" });
const PATH = `/${object.storePathHash}.narinfo`;
/** An upstream whose URL has a path, so that there is something to climb out of. */
const stored = { objects: [object, other], stored: true, dialect: "attic" } as const;

/** Useless answers, which do not show whether the upstream has the narinfo later. */
const USELESS: Readonly<Record<string, Fault>> = {
  "status 500": status(500),
  "status 503": status(503),
  "a connection that closes": dropped(),
  "a stall": stallAfter(10),
  "garbage": garbage(),
  "an empty body": rewritten(() => ""),
  "a bad signature": badSignature(),
  "no signature": unsigned(),
  "a changed signed field": rewritten((text) => text.replace(/NarSize: /, "NarSize: 1")),
  "another path's narinfo": rewritten((text) =>
    text.replaceAll(object.storePathHash, other.storePathHash)
  ),
  "a URL of another host": url("http://127.0.0.2/nar/x.nar"),
  "a URL without its scheme": url("//127.0.0.2/nar/x.nar"),
  "a URL out of the base": url("../../nar/x.nar"),
  "an encoded way out of the base": url("nar/%2e%2e/%2e%2e/x.nar"),
  "a file scheme": url("file:///etc/passwd"),
  "a body that is cut": rewritten((text) => text.slice(0, -20)),
  "70 KB that no signature covers": rewritten((text) => `${text}X: ${"x".repeat(70_000)}\n`),
  "10 MB of narinfo": rewritten((text) => `${text}X: ${"x".repeat(10_000_000)}\n`),
};

for (const [name, fault] of Object.entries(USELESS)) {
  Deno.test(`narinfo: ${name} reads as absent, is not remembered and not kept`, async () => {
    await using upstream = await fakeUpstream(stored);
    upstream.breakNarinfo(fault);
    // A stall alone ends by its timeout.
    const timeoutMs = name === "a stall" ? 1_000 : 30_000;
    await using cache = await TestCache.open({ upstreams: [upstream], timeoutMs });

    const refused = await cache.get(PATH);
    upstream.mend();
    const mended = await cache.get(PATH);

    assert.deepEqual([refused.status, refused.headers.get("x-cache")], [404, "MISS"]);
    assert.equal(refused.headers.get("cache-control"), "no-store, no-transform");
    assert.equal(await refused.text(), "Not Found\n");
    assert.deepEqual([mended.status, mended.headers.get("x-cache")], [200, "MISS"]);
  });
}

Deno.test("narinfo: no trusted key for an upstream is one warning, with the option", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream], trustedKeys: [] });
  for (const { storePathHash } of [object, other]) {
    assert.equal((await cache.get(`/${storePathHash}.narinfo`)).status, 404);
  }
  const warnings = cache.logged("warn");
  assert.equal(warnings.length, 1);
  assert.equal(warnings[0]?.["upstream"], upstream.url);
  assert.match(String(warnings[0]?.["hint"]), /--cache-upstream-public-key/);
});

Deno.test("narinfo: unsigned ones, where allowed, never get our signature", async () => {
  await using upstream = await fakeUpstream({ ...stored, key: "none" });
  await using cache = await TestCache.open({ upstreams: [upstream], requireSignature: false });
  for (const _ of ["miss", "hit"]) {
    assert.deepEqual(parseNarinfo(await cache.narinfo(object.storePathHash)).signatures, []);
  }
});

Deno.test("narinfo: a 404 beside a failure is not remembered", async () => {
  await using absent = await fakeUpstream({ stored: true });
  await using failing = await fakeUpstream(stored);
  failing.breakNarinfo(status(500));
  await using cache = await TestCache.open({ upstreams: [absent, failing] });

  assert.equal((await cache.get(PATH)).status, 404);
  failing.mend();
  assert.equal((await cache.get(PATH)).status, 200);
});

Deno.test("narinfo: a time to remember of 0 remembers nothing", async () => {
  await using upstream = await fakeUpstream({ stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], negativeTtlMs: 0 });
  await cache.get(PATH);
  await cache.get(PATH);
  assert.equal(upstream.count(PATH), 2);
});

function url(location: string): Fault {
  return rewritten((text) => text.replace(/^URL: .*$/m, `URL: ${location}`));
}

/** The part of the narinfo that counts as wrong; `undefined`: larder had nothing to compare. */
const COUNTED: Readonly<Record<string, readonly [Fault, string | undefined]>> = {
  "status 500": [status(500), undefined],
  "garbage": [garbage(), undefined],
  "an empty body": [rewritten(() => ""), undefined],
  "no signature": [unsigned(), undefined],
  "another key's signature": [rewritten((text) => text.replace(/^Sig: /m, "Sig: x")), undefined],
  "a bad signature": [badSignature(), "signature"],
  "another path's narinfo": [
    rewritten((text) => text.replaceAll(object.storePathHash, other.storePathHash)),
    "narinfo",
  ],
};

for (const [name, [fault, counted]] of Object.entries(COUNTED)) {
  Deno.test(`narinfo: ${name} is a verification failure only if it was compared`, async () => {
    await using upstream = await fakeUpstream(stored);
    upstream.breakNarinfo(fault);
    await using cache = await TestCache.open({ upstreams: [upstream] });
    assert.equal((await cache.get(PATH)).status, 404);
    const metrics = await scrape(cache);
    for (const reason of ["signature", "narinfo"]) {
      const value = metrics.value(`larder_verification_failures_total{reason="${reason}"}`);
      assert.equal(value, reason === counted ? 1 : 0, reason);
    }
  });
}
