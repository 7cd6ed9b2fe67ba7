import assert from "node:assert/strict";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { generateSecretKey, type SecretKey } from "../../src/nix/signature.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import {
  ALLOWED,
  AS_WRITER,
  documentsOf,
  pushOf,
  said,
  uploadKey,
  WRITE_TOKEN,
} from "../support/uploading.ts";

const thing = makeStoreObject({ name: "thing-1.0", size: 20_000 });
const [upstreamKey, strangeKey] = [generateSecretKey("upstream-1"), generateSecretKey("stranger")];

interface Case {
  readonly what: string;
  readonly hasToken: boolean;
  readonly uploadKeys?: readonly SecretKey[];
  readonly requireSignature?: boolean;
  readonly signedBy: SecretKey | undefined;
  /** `undefined`: it is taken. */
  readonly expected?: string;
}

const NO_TOKEN = "expected a write token or a signature by --cache-trusted-upload-key, " +
  "and none is set";
const BUILDER = "expected a signature of builder-1";
const NO_KEY = "expected a signature of a trusted upload key, and none is set";
const keys = { uploadKeys: [uploadKey] };

const CASES: readonly Case[] = [
  { what: "a token, unsigned", hasToken: true, signedBy: undefined },
  { what: "a token, signed by a stranger", hasToken: true, signedBy: strangeKey },
  { what: "no token, unsigned", hasToken: false, signedBy: undefined, expected: NO_TOKEN },
  { what: "no token, a stranger's key", hasToken: false, signedBy: strangeKey, expected: NO_TOKEN },
  {
    what: "no token, an upstream's key",
    hasToken: false,
    signedBy: upstreamKey,
    expected: NO_TOKEN,
  },
  { what: "an upload key", hasToken: true, ...keys, signedBy: uploadKey },
  { what: "an upload key and no token", hasToken: false, ...keys, signedBy: uploadKey },
  { what: "unsigned", hasToken: true, ...keys, signedBy: undefined, expected: BUILDER },
  { what: "an upstream's key", hasToken: true, ...keys, signedBy: upstreamKey, expected: BUILDER },
  {
    what: "no key at all",
    hasToken: true,
    requireSignature: true,
    signedBy: undefined,
    expected: NO_KEY,
  },
  {
    what: "no upload key",
    hasToken: true,
    requireSignature: true,
    signedBy: upstreamKey,
    expected: NO_KEY,
  },
];

/** True where no upload could ever be taken: larder then keeps no NAR that waits for a narinfo. */
const isClosed = (expected: string | undefined) => expected === NO_TOKEN || expected === NO_KEY;

for (const { what, hasToken, uploadKeys = [], requireSignature = false, ...one } of CASES) {
  const rule = uploadKeys.length > 0 ? ", upload keys given" : requireSignature ? ", required" : "";
  const verdict = one.expected === undefined ? "taken" : "422";
  Deno.test(`upload trust: the settings decide, given ${what}${rule}: ${verdict}`, async () => {
    await using cache = await TestCache.open({
      upstreams: [],
      trustedKeys: [upstreamKey.publicKey],
      tokens: hasToken ? [WRITE_TOKEN] : [],
      uploads: { ...ALLOWED, keys: uploadKeys.map(({ publicKey }) => publicKey), requireSignature },
    });
    const { signedBy: key, expected } = one;
    const { narPath, narinfoPath, narinfo, file } = await pushOf(thing, key && { key });
    const nar = await cache.put(narPath, file.bytes, AS_WRITER);
    assert.deepEqual(await said(nar), isClosed(expected) ? [422, expected] : [201, "stored"]);
    if (isClosed(expected)) assert.deepEqual(await cache.narNames(), []);
    // No key signs a document: a token decides, and no upload key stands in for it.
    const verdict = !hasToken ? 403 : isClosed(expected) ? 422 : 201;
    for (const [path, text] of documentsOf(thing)) {
      const answer = await cache.put(`/upload${path}`, text, AS_WRITER);
      assert.deepEqual([path, (await said(answer))[0]], [path, verdict]);
      const { status } = await cache.get(path);
      assert.deepEqual([path, status], [path, verdict === 201 ? 200 : 404]);
    }
    const answer = await cache.put(narinfoPath, narinfo, AS_WRITER);

    assert.deepEqual(
      await said(answer),
      expected === undefined ? [201, "stored"] : [422, expected],
    );
    const served = await cache.get(`/${thing.storePathHash}.narinfo`);
    assert.equal(served.status, expected === undefined ? 200 : 404);
    const text = await served.text();
    if (expected !== undefined) return;
    const names = parseNarinfo(text).signatures.map(({ keyName }) => keyName);
    assert.deepEqual(names, [...key === undefined ? [] : [key.name], "larder.test"]);
  });
}

Deno.test("upload trust: a signature of another narinfo is none", async () => {
  await using cache = await TestCache.open({
    upstreams: [],
    uploads: { ...ALLOWED, keys: [uploadKey.publicKey] },
  });
  const signed = await pushOf(makeStoreObject({ name: "other", size: 20_000 }), { key: uploadKey });
  const { narPath, narinfoPath, narinfo, file } = await pushOf(thing);
  await (await cache.put(narPath, file.bytes)).text();
  const stolen = /^Sig: .*$/m.exec(signed.narinfo)?.[0];
  const answer = await cache.put(narinfoPath, `${narinfo}${stolen}\n`);
  assert.deepEqual(await said(answer), [422, BUILDER]);
});

Deno.test("upload trust: a refused document says in the log which option lets it in", async () => {
  await using cache = await TestCache.open({
    upstreams: [],
    uploads: { ...ALLOWED, keys: [uploadKey.publicKey] },
  });
  const [[path, text] = ["", ""]] = documentsOf(thing);
  assert.deepEqual(await said(await cache.put(`/upload${path}`, text)), [403, "Forbidden"]);
  const line = cache.log.find(({ msg }) => msg === "request refused");
  assert.equal(line?.["reason"], "document without a signature");
  assert.match(String(line?.["hint"]), /--cache-put-token/);
});
