import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { compress } from "../support/compressors.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { AS_WRITER, pushOf, said, uploadCache } from "../support/uploading.ts";

const thing = makeStoreObject({ name: "thing-1.0", size: 20_000 });
const DRV = `${thing.baseName}.drv`;
const ID = `sha256:${"a".repeat(64)}!out`;

const DOCUMENTS: readonly (readonly [path: string, text: string, type: string])[] = [
  [`/${thing.storePathHash}.ls`, '{"version":1}', "application/json"],
  [`/log/${DRV}`, "built\n", "text/plain; charset=utf-8"],
  [`/build-trace-v2/${DRV}/out.doi`, '{"outPath":"x"}', "application/json"],
  [`/realisations/${ID}.doi`, '{"id":"x"}', "application/json"],
  [`/debuginfo/${"ab".repeat(20)}`, '{"archive":"../nar/x"}', "application/json"],
];

for (const [path, text, type] of DOCUMENTS) {
  Deno.test(`upload documents: ${path.split("/").at(1)} is served as it came`, async () => {
    await using upstream = await fakeUpstream();
    await using cache = await uploadCache({ upstreams: [upstream] });
    assert.equal((await cache.get(path)).status, 404);
    const asked = upstream.requests.length;
    for (const method of ["GET", "HEAD"]) {
      assert.equal((await cache.request(method, `/upload${path}`)).status, 404);
    }
    const put = () => cache.put(`/upload${path}`, text, AS_WRITER);
    assert.deepEqual(await said(await put()), [201, "stored"]);
    assert.deepEqual(await said(await put()), [200, "known"]);
    for (const from of [path, `/upload${path}`]) {
      const answer = await cache.get(from);
      assert.deepEqual(await said(answer), [200, text.trimEnd()]);
      assert.equal(answer.headers.get("content-type"), type);
      assert.equal(answer.headers.get("x-cache"), "HIT");
    }
    assert.equal(upstream.requests.length, asked, "no upstream is asked about it");
  });
}

Deno.test("upload documents: the Content-Encoding of a listing comes back with it", async () => {
  await using cache = await uploadCache();
  const [[path, text] = ["", ""]] = DOCUMENTS;
  for (const encoding of ["gzip", "br", "zstd", "xz"] as const) {
    const bytes = await compress(new TextEncoder().encode(text), encoding, { stored: true });
    const headers = { ...AS_WRITER, "content-encoding": encoding };
    assert.equal((await said(await cache.put(`/upload${path}`, bytes, headers)))[0], 201);
    const answer = await cache.get(path);
    assert.equal(answer.headers.get("content-encoding"), encoding);
    assertSameBytes(await answer.bytes(), bytes);
  }
});

Deno.test("upload documents: a narinfo with Content-Encoding is decoded", async () => {
  await using cache = await uploadCache();
  const { narPath, narinfoPath, narinfo, file } = await pushOf(thing);
  await (await cache.put(narPath, file.bytes, AS_WRITER)).text();
  for (const encoding of ["gzip", "br", "zstd", "xz"] as const) {
    const bytes = await compress(new TextEncoder().encode(narinfo), encoding, { stored: true });
    const headers = { ...AS_WRITER, "content-encoding": encoding };
    const [status] = await said(await cache.put(narinfoPath, bytes, headers));
    assert.equal(status, encoding === "gzip" ? 201 : 200);
  }
  assert.match(await cache.narinfo(thing.storePathHash), /^StorePath: /);
});

const OTHER_NAMES: readonly (readonly [name: string, encoded: (text: string) => Buffer])[] = [
  ["X-GZIP", gzipSync],
  ["deflate", deflateSync],
  // Some programs send deflate without the header of zlib.
  ["deflate", deflateRawSync],
  ["Identity", (text) => Buffer.from(text)],
];

for (const [name, encoded] of OTHER_NAMES) {
  Deno.test(`upload documents: an upload in ${name} by ${encoded.name} is read`, async () => {
    await using cache = await uploadCache();
    const [[path, text] = ["", ""]] = DOCUMENTS;
    const headers = { ...AS_WRITER, "content-encoding": name };
    const put = async (json: string) => {
      const bytes = new Uint8Array(encoded(json));
      return (await said(await cache.put(`/upload${path}`, bytes, headers)))[0];
    };
    assert.equal(await put("<html>"), 422);
    assert.equal(await put(text), 201);
    const answer = await cache.get(path);
    const names: Record<string, string> = { "X-GZIP": "gzip", "Identity": "" };
    assert.equal(answer.headers.get("content-encoding") ?? "", names[name] ?? name);
    assertSameBytes(await answer.bytes(), new Uint8Array(encoded(text)));
  });
}

Deno.test("upload documents: an invalid document is 4xx and not kept", async () => {
  await using cache = await uploadCache();
  const [[path] = [""]] = DOCUMENTS;
  const json = '{"version":1}';
  const put = async (at: string, body: BodyInit, encoding?: string) => {
    const more = encoding === undefined ? {} : { "content-encoding": encoding };
    return (await said(await cache.put(`/upload${at}`, body, { ...AS_WRITER, ...more })))[0];
  };
  assert.equal(await put(path, "<html>"), 422);
  assert.equal(await put(path, json, "gzip"), 422);
  assert.equal(await put(path, json, "rot13"), 415);
  assert.equal(await put(path, json, "gzip, br"), 415);
  assert.equal(await put(path, new Uint8Array(gzipSync(new Uint8Array(64 << 20))), "gzip"), 413);
  assert.equal(await put(`/realisations/${ID}.doi`, " ".repeat(2_000_000)), 413);
  assert.equal(await put("/log/x", "x"), 422);
  assert.equal(await put("/x.ls", json), 422);
  assert.equal(await put("/build-trace-v2/x/y.doi", json), 422);
  assert.equal(await cache.metadata.documentBytes(), 0);
});

Deno.test("upload documents: an upload takes the place of an upstream's", async () => {
  const [[path] = [""]] = DOCUMENTS;
  await using upstream = await fakeUpstream();
  upstream.onRequest = () => Response.json({ version: 2 });
  await using cache = await uploadCache({ upstreams: [upstream] });
  assert.match(await (await cache.get(path)).text(), /2/);
  assert.equal((await said(await cache.put(`/upload${path}`, '{"version":1}', AS_WRITER)))[0], 201);
  assert.match(await (await cache.get(path)).text(), /1/);
});
