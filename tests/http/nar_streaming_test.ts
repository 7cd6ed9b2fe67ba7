import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { chunked, Gate } from "../support/faults.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { GatedNar } from "../support/gated_nar.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "big-1.0", size: 4_000_000 });
const HASH = object.storePathHash;
const CLIENTS = 50;

Deno.test("nar: 50 clients of a cold one are one request, all get its bytes", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, upstream, server, path, bytes } = scene;

  gate.release(100_000);
  const clients = await Promise.all(Array.from({ length: CLIENTS }, async () => {
    const response = await fetch(server.url + path);
    const reader = response.body?.getReader();
    // The first bytes are here while the upstream has sent a fortieth.
    const first = await reader?.read();
    assert.ok(first?.value && first.value.length > 0 && first.value.length < 100_000);
    return { response, reader, first: first.value };
  }));
  gate.open();

  for (const { response, reader, first } of clients) {
    const chunks = [first];
    for (let part = await reader?.read(); part?.value; part = await reader?.read()) {
      chunks.push(part.value);
    }
    assert.equal(response.headers.get("content-length"), String(bytes.length));
    assert.ok(equal(new Uint8Array(await new Blob(chunks).arrayBuffer()), bytes));
  }
  assert.equal(upstream.count(/^\/nar\//), 1);
  const sources = clients.map(({ response }) => response.headers.get("x-cache")).toSorted();
  assert.deepEqual(sources, [...Array(CLIENTS - 1).fill("JOINED"), "MISS"]);
});

Deno.test("nar: each of 50 clients reads along, before the rest is here", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, cache, upstream, server, path, bytes } = scene;
  const half = Math.floor(bytes.length / 2);
  gate.release(half);
  const request = requestText("GET", path);
  const stop = { stopAfterBodyBytes: half - 10 };

  const parts = await Promise.all(
    Array.from({ length: CLIENTS }, () => rawRequest(server.port, request, stop)),
  );

  for (const { status, body } of parts) {
    assert.equal(status, 200);
    assert.ok(body.length >= half - 10 && equal(body, bytes.subarray(0, body.length)));
  }
  assert.equal(upstream.count(/^\/nar\//), 1);
  gate.open();
  await cache.downloadsOver();
});

Deno.test("nar: the first client leaves at 10 %, the other 49 get every byte", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, upstream, server, path, bytes } = scene;

  const tenth = Math.floor(bytes.length / 10);
  gate.release(tenth);
  const first = await rawRequest(server.port, requestText("GET", path), {
    stopAfterBodyBytes: tenth - 10,
  });
  assert.equal(first.complete, false);
  const others = Array.from({ length: CLIENTS - 1 }, async () => {
    return await (await fetch(server.url + path)).bytes();
  });
  gate.open();

  for (const body of await Promise.all(others)) assert.ok(equal(body, bytes));
  assert.equal(upstream.count(/^\/nar\//), 1);
});

Deno.test("nar: when every client leaves the download goes on and is kept", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, cache, server, path } = scene;
  gate.release(500_000);
  const request = requestText("GET", path);
  await Promise.all(
    [1, 2, 3].map(() => rawRequest(server.port, request, { stopAfterBodyBytes: 100_000 })),
  );
  gate.open();
  await cache.downloadsOver();

  const hit = await cache.get(path);
  assert.equal(hit.headers.get("x-cache"), "HIT");
  await hit.body?.cancel();
});

Deno.test("nar: a client that reads nothing does not hold up another", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  await using server = cache.listen();
  await using idle = await RawConnection.open(server.port);
  await idle.send(requestText("GET", path));

  const body = await (await fetch(server.url + path)).bytes();

  assert.ok(equal(body, (await upstream.narFileOf(object)).bytes));
});

Deno.test("nar: a range of one that is still coming in is a range of the whole file", async () => {
  await using scene = await GatedNar.open(object);
  const { gate, cache, path, bytes } = scene;
  gate.release(100_000);
  const start = bytes.length - 1_000;
  const asked = cache.get(path, { range: `bytes=${start}-` });
  gate.open();

  const part = await asked;
  assert.equal(part.status, 206);
  const expected = `bytes ${start}-${bytes.length - 1}/${bytes.length}`;
  assert.equal(part.headers.get("content-range"), expected);
  assertSameBytes(await part.bytes(), bytes.subarray(start));
});

Deno.test("nar: a part of one that is coming in is whole once the file is right", async () => {
  for (const limitBytes of [Infinity, 1_000]) {
    const gate = new Gate();
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    upstream.breakNar(gate.fault);
    await using cache = await TestCache.open({ upstreams: [upstream], limitBytes });
    const path = await cache.narPath(HASH);
    const { bytes } = await upstream.narFileOf(object);
    await using server = cache.listen();
    gate.release(300_000);

    await using client = await RawConnection.open(server.port);
    await client.send(requestText("GET", path, { range: "bytes=1000-199999" }));
    const { status, reader } = await client.answer();
    const before = await reader.read(50_000);
    assert.deepEqual([status, reader.isComplete], [206, false]);
    gate.open();

    const after = await reader.read(Infinity);
    assert.ok(reader.isComplete);
    const part = new Uint8Array(await new Blob([before, after]).arrayBuffer());
    assert.ok(equal(part, bytes.subarray(1_000, 200_000)), `${part.length}`);
  }
});

Deno.test("nar: without an announced length it is sent in chunks, and the same", async () => {
  await using upstream = await fakeUpstream({
    dialect: "attic",
    objects: [object],
    stored: true,
  });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  const miss = await cache.get(path);
  assert.equal(miss.headers.get("content-length"), null);
  assert.equal(miss.headers.get("accept-ranges"), null);
  assert.ok(equal(await miss.bytes(), (await upstream.narFileOf(object)).bytes));
});

Deno.test("nar: an uncompressed one has its signed size as length, even if chunked", async () => {
  await using upstream = await fakeUpstream({
    dialect: "nix-serve",
    objects: [object],
    stored: true,
  });
  upstream.breakNar(chunked());
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  const head = await cache.head(path);
  const miss = await cache.get(path);
  for (const { headers } of [head, miss]) {
    assert.equal(headers.get("content-length"), String(object.narSize));
  }
  assert.ok(equal(await miss.bytes(), object.nar));
});

Deno.test("nar: an empty output and a one-byte file go through", async () => {
  const tiny = ["", "x"].map((text) => makeStoreObject({ name: `t${text}`, tree: { file: text } }));
  await using upstream = await fakeUpstream({ objects: tiny, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  for (const one of tiny) {
    const path = await cache.narPath(one.storePathHash);
    const { bytes } = await upstream.narFileOf(one);
    assertSameBytes(await (await cache.get(path)).bytes(), bytes);
  }
});

/** Quick for megabytes, where deepEqual is not. */
function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
