import assert from "node:assert/strict";
import { type Compression, COMPRESSIONS } from "../../src/nix/compression.ts";
import { fingerprintOf } from "../../src/nix/fingerprint.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { available } from "../support/compressors.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { testUnless } from "../support/program.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { scrape } from "../support/scrape.ts";
import { chain, makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { AS_WRITER, push, pushOf, said, uploadCache, uploadKey } from "../support/uploading.ts";

/** What an upstream has signed may be uploaded without a question to it. */
const upstreamKey = generateSecretKey("upstream-1");

const thing = makeStoreObject({ name: "thing-1.0", size: 40_000 });

for (const compression of Object.keys(COMPRESSIONS) as Compression[]) {
  testUnless(
    available(compression),
    `upload: a path in ${compression} comes back whole and signed by us`,
    async () => {
      await using cache = await uploadCache();
      const one = await pushOf(thing, { compression });
      assert.deepEqual(await push(cache, one), [201, 201]);

      const narinfo = parseNarinfo(await cache.narinfo(thing.storePathHash));
      const isOurs = narinfo.signatures.some((signature) =>
        cache.secretKey.publicKey.verify(fingerprintOf(narinfo), signature)
      );
      assert.ok(isOurs, "it has our signature");
      const nar = await cache.get(`/${narinfo.url}`);
      assert.deepEqual([nar.status, nar.headers.get("x-cache")], [200, "HIT"]);
      assertSameBytes(await nar.bytes(), one.file.bytes);
    },
  );
}

Deno.test("upload: without the option PUT is 405, and the reads of a push still work", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const one = await pushOf(thing);
  for (const path of [one.narPath, one.narinfoPath, "/upload/log/x.drv"]) {
    const answer = await cache.put(path, "x");
    const line = "Method Not Allowed: upload below /upload, once larder has --cache-allow-put-verb";
    assert.deepEqual([...await said(answer)], [405, line]);
    assert.equal(answer.headers.get("allow"), "GET, HEAD");
  }
  const info = await cache.get("/upload/nix-cache-info");
  assert.equal(await info.text(), await (await cache.get("/nix-cache-info")).text());
  assert.equal((await cache.get(one.narinfoPath)).status, 404);
});

Deno.test("upload: HEAD equals GET before, between and after the two PUTs", async () => {
  await using cache = await uploadCache();
  const one = await pushOf(thing);
  const statuses = async () => {
    const seen: unknown[] = [];
    for (const path of [one.narPath, one.narinfoPath]) {
      const [head, get] = [await cache.head(path), await cache.get(path)];
      const facts = ({ status, headers }: Response) => [
        status,
        headers.get("content-length"),
        headers.get("etag"),
        headers.get("x-cache"),
      ];
      const bytes = await get.bytes();
      const [status, length, ...rest] = facts(head);
      assert.deepEqual([status, ...rest], facts(get).toSpliced(1, 1));
      assert.equal(length, String(bytes.length));
      await head.body?.cancel();
      seen.push(status);
    }
    return seen;
  };

  assert.deepEqual(await statuses(), [404, 404]);
  await (await cache.put(one.narPath, one.file.bytes, AS_WRITER)).text();
  assert.deepEqual(await statuses(), [200, 404]);
  await (await cache.put(one.narinfoPath, one.narinfo, AS_WRITER)).text();
  assert.deepEqual(await statuses(), [200, 200]);
});

Deno.test("upload: a query behind the path changes nothing", async () => {
  await using cache = await uploadCache();
  const one = await pushOf(thing);
  const query = "?compression=zstd&want-mass-query=true&secret-key=/x%20y";
  for (const path of [one.narPath, one.narinfoPath]) {
    const body = path === one.narPath ? one.file.bytes : one.narinfo;
    assert.equal((await cache.put(path + query, body, AS_WRITER)).status, 201);
    assert.equal((await cache.head(path + query)).status, 200);
  }
});

Deno.test("upload: again is 200, and keeps one file and one narinfo", async () => {
  await using cache = await uploadCache();
  const one = await pushOf(thing);
  assert.deepEqual(await push(cache, one), [201, 201]);
  const before = await cache.narinfo(thing.storePathHash);
  assert.deepEqual(await push(cache, one), [200, 200]);
  assert.deepEqual(await push(cache, { ...one, narinfo: before }), [200, 200]);
  assert.equal(await cache.narinfo(thing.storePathHash), before);
  assert.deepEqual([(await cache.narNames()).length, cache.growingFiles()], [1, []]);
  assert.equal(cache.bytesOnDisk(), one.file.bytes.length);
});

Deno.test("upload: in another compression it is the same path: 200, and nothing more", async () => {
  await using cache = await uploadCache();
  await push(cache, await pushOf(thing));
  const before = await cache.narinfo(thing.storePathHash);
  assert.deepEqual(await push(cache, await pushOf(thing, { compression: "xz" })), [201, 200]);
  assert.equal(await cache.narinfo(thing.storePathHash), before);
});

Deno.test("upload: a further signature is added to those that are here", async () => {
  await using cache = await uploadCache();
  const signed = await pushOf(thing, { key: uploadKey });
  await push(cache, await pushOf(thing));
  assert.deepEqual(await push(cache, signed), [200, 201]);
  await push(cache, await pushOf(thing));
  const { signatures } = parseNarinfo(await cache.narinfo(thing.storePathHash));
  assert.deepEqual(signatures.map(({ keyName }) => keyName), ["builder-1", "larder.test"]);
});

Deno.test("upload: in chunks, without a length, it is the same", async () => {
  await using cache = await uploadCache();
  const one = await pushOf(makeStoreObject({ name: "chunked", size: 3_000_000 }));
  await using server = cache.listen();
  const url = `${server.url}${one.narPath}`;
  const body = new Blob([one.file.bytes]).stream();
  const answer = await fetch(url, { method: "PUT", headers: AS_WRITER, body });
  assert.deepEqual(await said(answer), [201, "stored"]);
  assertSameBytes(await (await cache.get(one.narPath)).bytes(), one.file.bytes);
});

Deno.test("upload: requests below it go to no upstream, and those outside it do", async () => {
  await using upstream = await fakeUpstream({ objects: [thing], stored: true });
  await using cache = await uploadCache({ upstreams: [upstream] });
  const one = await pushOf(thing, { compression: "xz" });
  for (const path of [one.narinfoPath, one.narPath, `/upload/${thing.storePathHash}.ls`]) {
    for (const method of ["GET", "HEAD"]) {
      assert.equal((await cache.request(method, path)).status, 404);
    }
  }
  assert.deepEqual(upstream.requests, []);

  // A narinfo without its NAR file is not here: the push has to bring the file.
  await cache.narinfo(thing.storePathHash);
  assert.equal((await cache.get(one.narinfoPath)).status, 404);
  assert.deepEqual(await push(cache, one), [201, 200]);
  await upstream.stop();
  for (const path of [one.narinfoPath, one.narPath, one.narPath.slice("/upload".length)]) {
    assert.equal((await cache.head(path)).status, 200);
  }
  assert.deepEqual(upstream.count(/^\/nar\//), 0);
});

Deno.test("upload: it ends the remembered absence of its hash at once", async () => {
  await using upstream = await fakeUpstream();
  await using cache = await uploadCache({ upstreams: [upstream] });
  const path = `/${thing.storePathHash}.narinfo`;
  assert.equal((await cache.get(path)).status, 404);
  await push(cache, await pushOf(thing));
  assert.equal((await cache.get(path)).status, 200);
});

Deno.test("upload: an absence that was being looked up is not remembered after it", async () => {
  const gate = Promise.withResolvers<undefined>();
  await using upstream = await fakeUpstream({ key: upstreamKey });
  upstream.onRequest = () => gate.promise;
  await using cache = await uploadCache({ upstreams: [upstream] });
  const path = `/${thing.storePathHash}.narinfo`;
  const early = cache.get(path);
  await push(cache, await pushOf(thing, { key: upstreamKey }));
  gate.resolve(undefined);
  await (await early).text();
  assert.equal((await cache.get(path)).status, 200);
});

Deno.test("upload: an upstream's late narinfo does not replace a pushed one", async () => {
  const gate = Promise.withResolvers<undefined>();
  const { nar, narHash, narSize } = makeStoreObject({ name: "another-build", size: 50_000 });
  await using upstream = await fakeUpstream({
    ...{ objects: [{ ...thing, nar, narHash, narSize }], key: upstreamKey },
  });
  upstream.onRequest = () => gate.promise;
  await using cache = await uploadCache({ upstreams: [upstream] });
  const early = cache.narinfo(thing.storePathHash);
  const one = await pushOf(thing, { key: upstreamKey });
  assert.deepEqual(await push(cache, one), [201, 201]);
  gate.resolve(undefined);
  assert.match(await early, new RegExp(`NarHash: sha256:${thing.narHash}`));
  const path = await cache.narPath(thing.storePathHash);
  assertSameBytes(await (await cache.get(path)).bytes(), one.file.bytes);
});

Deno.test("upload: a pinned closure protects paths pushed into it later", async () => {
  const [leaf, top] = chain(2);
  assert.ok(leaf && top);
  const [leafPush, topPush] = [await pushOf(leaf), await pushOf(top)];
  const limitBytes = leafPush.file.bytes.length + topPush.file.bytes.length + 500;
  await using cache = await uploadCache({ limitBytes });
  await push(cache, topPush);
  await (await cache.request("POST", `/pin/${top.storePathHash}.narinfo`, AS_WRITER)).text();
  assert.deepEqual(await push(cache, leafPush), [201, 201]);

  const large = await pushOf(makeStoreObject({ name: "large", size: 600 }));
  const refused = await cache.put(large.narPath, large.file.bytes, AS_WRITER);
  assert.equal(refused.status, 507);
  for (const one of [leafPush, topPush]) assert.equal((await cache.head(one.narPath)).status, 200);
});

Deno.test("upload: its counters and its log lines show each upload and its result", async () => {
  await using cache = await uploadCache();
  const one = await pushOf(thing);
  await push(cache, one);
  await push(cache, one);
  await (await cache.put(one.narinfoPath, "x", AS_WRITER)).text();
  assert.deepEqual((await scrape(cache)).nonZero("larder_uploads_total"), {
    '{kind="nar",result="stored"}': 1,
    '{kind="nar",result="known"}': 1,
    '{kind="narinfo",result="stored"}': 1,
    '{kind="narinfo",result="known"}': 1,
    '{kind="narinfo",result="refused"}': 1,
  });
  const line = cache.log.find(({ msg }) => msg === "nar uploaded");
  assert.deepEqual(line?.["file_size"], one.file.bytes.length);
  assert.deepEqual(line?.["nar_size"], thing.narSize);
  assert.ok(line?.["request_id"]);
  const refused = cache.log.find(({ msg }) => msg === "upload refused");
  const facts = ["status", "token", "role", "method"].map((fact) => refused?.[fact]);
  assert.deepEqual(facts, [422, "ci", "write", "PUT"]);
  const taken = cache.log.find(({ msg, method }) => msg === "request" && method === "PUT");
  assert.equal(refused?.["client"], taken?.["client"], "as in the other lines of a request");
});
