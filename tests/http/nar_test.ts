import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import type { StoredName } from "../../src/nix/stored_name.ts";
import type { OpenOptions, StoredNar } from "../../src/storage/nar_store.ts";
import { decompress } from "../support/decompressors.ts";
import { type Dialect, DIALECTS } from "../support/dialects.ts";
import { dialectAvailable, fakeUpstream } from "../support/fake_upstream.ts";
import { MemoryNarStore } from "../support/memory_nar_store.ts";
import { testUnless } from "../support/program.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 300_000 });
const HASH = object.storePathHash;

Deno.test("nar: a client that leaves ends the opening of a file, without an error", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const left = new AbortController();
  const nars = new StoreOfLeaving(left);
  await using cache = await TestCache.open({ upstreams: [upstream], nars });
  const path = await cache.narPath(HASH);
  await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  await (await cache.request("GET", path, {}, left)).body?.cancel();
  assert.equal(nars.opened, 1);
  assert.deepEqual(cache.logged("error"), []);
  assert.equal(upstream.count(/^\/nar\//, "GET"), 1);
});

/** Its client leaves while it opens a file. */
class StoreOfLeaving extends MemoryNarStore {
  opened = 0;

  constructor(readonly left: AbortController) {
    super();
  }

  override open(at: StoredName, options: OpenOptions): Promise<StoredNar | undefined> {
    this.opened++;
    this.left.abort();
    return super.open(at, options);
  }
}

for (const dialect of Object.keys(DIALECTS) as Dialect[]) {
  testUnless(
    dialectAvailable(dialect),
    `nar: a NAR of a ${dialect} upstream matches its narinfo, cold and kept`,
    async () => {
      await using upstream = await fakeUpstream({ dialect, objects: [object] });
      await using cache = await TestCache.open({ upstreams: [upstream] });
      const narinfo = parseNarinfo(await cache.narinfo(HASH));

      for (const source of ["MISS", "HIT"]) {
        const response = await cache.get(`/${narinfo.url}`);
        assert.equal(response.status, 200);
        assert.equal(response.headers.get("x-cache"), source);
        assert.equal(response.headers.get("content-type"), "application/x-nix-nar");
        const bytes = await response.bytes();
        await assertAgrees(narinfo, bytes);
        await cache.downloadsOver();
      }
      assert.equal(upstream.count(/^\/nar\//, "GET"), 1);
      assert.deepEqual(cache.growingFiles(), []);
    },
  );
}

Deno.test("nar: a kept one has a length, a tag and ranges", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  const bytes = await (await cache.get(path)).bytes();
  await cache.downloadsOver();

  const whole = await cache.get(path);
  assert.equal(whole.headers.get("accept-ranges"), "bytes");
  assert.equal(whole.headers.get("content-length"), String(bytes.length));
  assert.equal(whole.headers.get("content-encoding"), null);
  const tag = whole.headers.get("etag") ?? "";
  assert.match(tag, /^"[0-9a-z]{52}"$/);
  await whole.body?.cancel();

  const part = await cache.get(path, { range: "bytes=1000-" });
  assert.equal(part.status, 206);
  const end = bytes.length - 1;
  assert.equal(part.headers.get("content-range"), `bytes 1000-${end}/${bytes.length}`);
  assertSameBytes(await part.bytes(), bytes.subarray(1000));

  const beyond = await cache.get(path, { range: `bytes=${bytes.length}-` });
  assert.equal(beyond.status, 416);
  assert.equal(beyond.headers.get("content-range"), `bytes */${bytes.length}`);

  const known = await cache.get(path, { "if-none-match": `"x", W/${tag}` });
  assert.deepEqual([known.status, await known.text()], [304, ""]);
  const other = await cache.get(path, { "range": "bytes=1-2", "if-range": '"other"' });
  assert.equal(other.status, 200);
  await other.body?.cancel();
});

Deno.test("nar: HEAD answers like GET, kept or not, and starts no download", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);

  const cold = await cache.head(path);
  assert.deepEqual([cold.status, await cold.text()], [200, ""]);
  assert.equal(upstream.count(/^\/nar\//, "GET"), 0);
  const miss = await cache.get(path);
  await miss.bytes();
  assert.equal(cold.headers.get("content-length"), miss.headers.get("content-length"));
  await cache.downloadsOver();

  await using server = cache.listen();
  for (const range of ["bytes=5-9", "nothing"]) {
    const headers = { range };
    const get = await fetch(server.url + path, { headers });
    const head = await fetch(server.url + path, { headers, method: "HEAD" });
    await get.bytes();
    assert.equal(head.status, get.status);
    assert.deepEqual(comparable(head), comparable(get));
  }
});

Deno.test("nar: HEAD of a NAR that the upstream lost is 404 like GET", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  upstream.remove(object);
  assert.equal((await cache.head(path)).status, 404);
  assert.equal((await cache.get(path)).status, 404);
});

Deno.test("nar: a name that no NAR can have is 404, with no upstream request", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const unknown = "0".repeat(52);
  const names = [`${unknown}.nar.rar`, `${unknown}`, "x.nar", "", ".", "..", `${HASH}.nar`];
  await using server = cache.listen();
  // As they are: a `Request` would resolve the dots.
  for (const name of names) {
    const { status } = await rawRequest(server.port, requestText("GET", `/nar/${name}`));
    assert.equal(status, 404, name);
  }
  assert.equal(upstream.count(/^\/nar\//), 0);
});

Deno.test("nar: a file cut or removed behind the server is fetched again", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  const bytes = await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  const name = path.slice("/nar/".length);
  const harms = [(file: string) => Deno.truncate(file, 1_000), Deno.remove];
  for (const harm of harms) {
    await harm(cache.fileOf(name));
    const mended = await cache.get(path);
    assert.equal(mended.headers.get("x-cache"), "MISS");
    assertSameBytes(await mended.bytes(), bytes);
    await cache.downloadsOver();
    const hit = await cache.get(path);
    assert.equal(hit.headers.get("x-cache"), "HIT");
    assertSameBytes(await hit.bytes(), bytes);
  }
  assert.equal(cache.logged("error").length, 2);
});

Deno.test("nar: cut behind the server, with the upstream off, it is 404", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(HASH);
  await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  const name = path.slice("/nar/".length);
  await Deno.truncate(cache.fileOf(name), 1_000);
  await upstream.stop();
  assert.equal((await cache.get(path)).status, 404);
});

for (const dialect of ["harmonia", "snix", "attic"] as const) {
  Deno.test(`nar: our URL of a ${dialect} NAR outlives narinfo and file`, async () => {
    await using upstream = await fakeUpstream({ dialect, objects: [object], stored: true });
    await using cache = await TestCache.open({ upstreams: [upstream] });
    const narinfo = parseNarinfo(await cache.narinfo(HASH));
    assert.match(narinfo.url, /^nar\/[0-9a-z]{52}\.nar[a-z.]*$/);
    await (await cache.get(`/${narinfo.url}`)).bytes();
    await cache.downloadsOver();
    await cache.evict(object.storePathHash);

    const again = await cache.get(`/${narinfo.url}`);

    assert.equal(again.headers.get("x-cache"), "MISS");
    await assertAgrees(narinfo, await again.bytes());
  });
}

async function assertAgrees(
  narinfo: ReturnType<typeof parseNarinfo>,
  bytes: Bytes,
): Promise<void> {
  if (narinfo.fileSize !== undefined) assert.equal(bytes.length, narinfo.fileSize);
  if (narinfo.fileHash !== undefined) assert.equal(sha256(bytes), narinfo.fileHash);
  const nar = await decompress(bytes, narinfo.compression);
  assert.equal(nar.length, narinfo.narSize);
  assert.equal(sha256(nar), narinfo.narHash);
}

function sha256(bytes: Uint8Array): string {
  return sha256FromDigest(createHash("sha256").update(bytes).digest());
}

function comparable(response: Response): unknown {
  const varying = ["date", "x-request-id"];
  return [...response.headers].filter(([name]) => !varying.includes(name));
}
