import assert from "node:assert/strict";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import type { TestCache } from "../support/test_cache.ts";
import { AS_WRITER, push, pushOf, said, uploadCache, uploadKey } from "../support/uploading.ts";

const thing = makeStoreObject({ name: "thing-1.0", size: 20_000 });
const other = otherBuildOf(thing);

const SIGNED_BEFORE =
  "expected the NAR hash, NAR size and references that larder has signed before";

/** Fillers differ, so that each takes its room. */
function filler(seed: number): StoreObject {
  return makeStoreObject({ name: "filler", size: 20_000, seed });
}

/** The same store path with other bytes. */
function otherBuildOf(object: StoreObject): StoreObject {
  const { nar, narHash, narSize } = makeStoreObject({ name: "other", size: 20_000, seed: 99 });
  return { ...object, nar, narHash, narSize };
}

/** Pushes the NAR, then the narinfo; the answer to the latter. */
async function answerTo(cache: TestCache, object: StoreObject) {
  const one = await pushOf(object);
  await (await cache.put(one.narPath, one.file.bytes, AS_WRITER)).text();
  return await said(await cache.put(one.narinfoPath, one.narinfo, AS_WRITER));
}

/** Fills the cache until the path has gone. */
async function evict(cache: TestCache, { storePathHash }: StoreObject): Promise<void> {
  for (let round = 0; await cache.metadata.findNarinfo(storePathHash) !== undefined; round++) {
    assert.ok(round < 20, "it is evicted");
    await push(cache, await pushOf(filler(round + 1)));
  }
}

async function pull(cache: TestCache, { storePathHash }: StoreObject): Promise<void> {
  await (await cache.get(await cache.narPath(storePathHash))).bytes();
  await cache.downloadsOver();
}

Deno.test("upload replace: an evicted upload comes back with its own bytes alone", async () => {
  await using cache = await uploadCache({ limitBytes: 70_000 });
  assert.deepEqual(await answerTo(cache, thing), [201, "stored"]);
  await evict(cache, thing);
  assert.deepEqual(await answerTo(cache, other), [409, SIGNED_BEFORE]);
  assert.equal((await cache.get(`/${thing.storePathHash}.narinfo`)).status, 404);
  assert.deepEqual(await answerTo(cache, thing), [201, "stored"]);
});

Deno.test("upload replace: what an upstream has keeps its bytes before anybody pulled it", async () => {
  await using upstream = await fakeUpstream({ objects: [thing], stored: true });
  await using cache = await uploadCache({ upstreams: [upstream] });
  const [status, line] = await answerTo(cache, other);
  assert.equal(status, 409);
  assert.match(line, new RegExp(`expected NarHash sha256:${thing.narHash}`));
  const served = parseNarinfo(await cache.narinfo(thing.storePathHash));
  assert.equal(served.narHash, thing.narHash);
  assert.deepEqual(await answerTo(cache, thing), [201, "stored"]);
  assert.equal(upstream.count(/\.narinfo$/), 1, "it is asked once");
});

Deno.test("upload replace: while the upstream is off, what was pulled from it stays", async () => {
  await using upstream = await fakeUpstream({ objects: [thing], stored: true });
  await using cache = await uploadCache({ upstreams: [upstream], limitBytes: 70_000 });
  await pull(cache, thing);
  await evict(cache, thing);
  await upstream.stop();
  assert.deepEqual(await answerTo(cache, other), [409, SIGNED_BEFORE]);
  assert.deepEqual(await answerTo(cache, thing), [201, "stored"]);
});

Deno.test("upload replace: a path that larder never saw needs no upstream that is off", async () => {
  await using upstream = await fakeUpstream();
  await using cache = await uploadCache({ upstreams: [upstream] });
  await upstream.stop();
  assert.deepEqual(await answerTo(cache, thing), [201, "stored"]);
});

Deno.test("upload replace: an upstream that is up and fails to tell is waited for", async () => {
  await using upstream = await fakeUpstream();
  await using cache = await uploadCache({ upstreams: [upstream] });
  upstream.onRequest = () => new Response("busy", { status: 500 });
  const [status] = await answerTo(cache, thing);
  assert.equal(status, 503);
  upstream.onRequest = undefined;
  assert.deepEqual(await answerTo(cache, thing), [201, "stored"]);
});

Deno.test("upload replace: an absence that is remembered needs no second request", async () => {
  await using upstream = await fakeUpstream();
  await using cache = await uploadCache({ upstreams: [upstream] });
  assert.equal((await cache.get(`/${thing.storePathHash}.narinfo`)).status, 404);
  assert.deepEqual(await answerTo(cache, thing), [201, "stored"]);
  assert.equal(upstream.count(/\.narinfo$/), 1);
});

Deno.test("upload replace: a trusted upload key may build an evicted path anew", async () => {
  const uploads = { allowed: true, keys: [uploadKey.publicKey], requireSignature: false };
  await using cache = await uploadCache({ limitBytes: 70_000, uploads });
  const signed = (object: StoreObject) => pushOf(object, { key: uploadKey });
  assert.deepEqual(await push(cache, await signed(thing)), [201, 201]);
  for (let round = 0; await cache.metadata.findNarinfo(thing.storePathHash); round++) {
    assert.ok(round < 20);
    await push(cache, await signed(filler(round + 1)));
  }
  assert.deepEqual(await push(cache, await signed(other)), [201, 201]);
});

Deno.test("upload replace: DELETE of an evicted path lets it have other bytes", async () => {
  const admin = { name: "root", role: "admin", secret: "admin-secret" } as const;
  const writer = { name: "ci", role: "write", secret: "write-secret" } as const;
  await using cache = await uploadCache({
    limitBytes: 70_000,
    allowDelete: true,
    tokens: [writer, admin],
  });
  await answerTo(cache, thing);
  await evict(cache, thing);
  const remove = async (secret: string) => {
    const headers = { authorization: `Bearer ${secret}` };
    return (await cache.request("DELETE", `/${thing.storePathHash}.narinfo`, headers)).status;
  };
  assert.equal(await remove("write-secret"), 403);
  assert.deepEqual(await answerTo(cache, other), [409, SIGNED_BEFORE]);
  assert.equal(await remove("admin-secret"), 200);
  assert.equal(await remove("admin-secret"), 404);
  assert.deepEqual(await answerTo(cache, other), [201, "stored"]);
});

Deno.test("upload replace: a full memory of signed paths refuses new uploads, and keeps all", async () => {
  await using cache = await uploadCache({ limitBytes: 70_000 });
  await answerTo(cache, thing);
  await fillMemory(cache);
  const [status, line] = await answerTo(cache, makeStoreObject({ name: "new", size: 100 }));
  assert.equal(status, 507);
  assert.match(line, /expected at most 10000 uploaded paths/);
  await cache.metadata.apply([{ kind: "remove-narinfo", storePathHash: thing.storePathHash }]);
  assert.deepEqual(await answerTo(cache, other), [409, SIGNED_BEFORE]);
});

async function fillMemory(cache: TestCache): Promise<void> {
  const { digest } = await cache.metadata.findSigned(thing.storePathHash) ?? assert.fail("known");
  const alphabet = "0123456789abcdfghijklmnpqrsvwxyz";
  const hashOf = (index: number) => {
    const text = [...index.toString(16).padStart(32, "0")].map((one) =>
      alphabet[Number.parseInt(one, 16)] ?? "0"
    );
    return text.join("") as typeof thing.storePathHash;
  };
  await cache.metadata.apply(Array.from({ length: 10_000 }, (_, index) => ({
    kind: "put-signed" as const,
    ...{ storePathHash: hashOf(index), digest, isUploaded: true, countMax: Infinity },
  })));
}
