import assert from "node:assert/strict";
import { constants, zstdCompressSync } from "node:zlib";
import { Bzip2Speaker } from "../../src/cache/forms/spoken_bzip2.ts";
import { hasZstdEncoder } from "../../src/cache/recompress/encode_nar.ts";
import type { Compression } from "../../src/nix/compression.ts";
import { available } from "../support/compressors.ts";
import { decompress } from "../support/decompressors.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { corruptByteAt } from "../support/faults.ts";
import { testUnless, testWhere } from "../support/program.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { recompressed } from "../support/recompressed.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { push, pushOf, uploadCache } from "../support/uploading.ts";

const object = makeStoreObject({ name: "thing-1.0", size: 700_000 });
const { nar, storePathHash } = object;

const FIELDS = ["content-length", "etag", "accept-ranges", "x-cache"];

/** GET and HEAD of a path, which have the same status and header fields. */
async function answers(cache: TestCache, path: string, headers: HeadersInit = {}) {
  const head = await cache.head(path, headers);
  const answer = await cache.get(path, headers);
  assert.equal(head.status, answer.status, path);
  for (const field of FIELDS) {
    assert.equal(head.headers.get(field), answer.headers.get(field), `${path}: ${field}`);
  }
  const bytes = await answer.bytes();
  const length = answer.headers.get("content-length");
  if (length !== null) assert.equal(bytes.length, Number(length));
  return { answer, bytes, etag: answer.headers.get("etag") };
}

function linesOf(text: string, ...keys: readonly string[]): readonly (string | undefined)[] {
  return keys.map((key) => new RegExp(`^${key}: (.*)$`, "m").exec(text)?.[1]);
}

async function pulled(compression: Compression = "xz", one = object) {
  const { storePathHash } = one;
  const scope = new AsyncDisposableStack();
  const upstream = scope.use(
    await fakeUpstream({ objects: [one], compression, stored: compression !== "br" }),
  );
  const cache = scope.use(await TestCache.open({ upstreams: [upstream], allowDelete: true }));
  const path = await cache.narPath(storePathHash);
  const before = await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  return {
    upstream,
    cache,
    path,
    before,
    [Symbol.asyncDispose]: () => scope.disposeAsync(),
  };
}

Deno.test("nar forms: the narinfo of a recompressed NAR names its zstd file, all else stays", async () => {
  await using world = await pulled();
  const { cache } = world;
  const before = await cache.narinfo(storePathHash);
  const { name, file } = await recompressed(cache, object);

  const text = await cache.narinfo(storePathHash);
  const kept = (await cache.metadata.findNar(await formerName(cache)))?.kept;
  assert.deepEqual(linesOf(text, "URL", "Compression", "FileHash", "FileSize"), [
    `nar/${name}`,
    "zstd",
    `sha256:${kept?.fileHash}`,
    String(file.length),
  ]);
  const others = (lines: string) =>
    lines.split("\n").filter((line) => !/^(URL|Compression|FileHash|FileSize):/.test(line));
  assert.deepEqual(others(text), others(before));
});

async function formerName(cache: TestCache) {
  const row = await cache.metadata.findNarinfo(storePathHash);
  assert.ok(row);
  return row.narName;
}

for (const compression of ["xz", "none", "gzip", "br", "bzip2"] as const) {
  testUnless(
    available(compression),
    `nar forms: the old name of a NAR in ${compression} gets that after it is zstd`,
    async () => {
      await using world = await pulled(compression);
      const { cache, path } = world;
      const { name, file } = await recompressed(cache, object);

      const zstd = await answers(cache, `/nar/${name}`);
      assertSameBytes(zstd.bytes, file);
      const old = await answers(cache, path);
      assertSameBytes(await decompress(old.bytes, compression), nar);
      assert.notEqual(old.etag, zstd.etag);
      for (const { answer } of [old, zstd]) {
        assert.equal(answer.status, 200);
        assert.equal(answer.headers.get("x-cache"), "HIT");
      }
      const again = await answers(cache, path);
      assertSameBytes(again.bytes, old.bytes);
      assert.equal((await cache.get(path, { "if-none-match": `${old.etag}` })).status, 304);
    },
  );
}

Deno.test("nar forms: ranges are those of the form that was asked for", async () => {
  await using world = await pulled();
  const { cache, path, upstream } = world;
  const { name } = await recompressed(cache, object);
  for (const one of [path, `/nar/${name}`]) {
    const { bytes } = await answers(cache, one);
    const last = bytes.length - 1;
    const parts = [[0, 0], [0, last], [3, 70_000], [65_560, 65_570], [last - 40, last], [
      last,
      last,
    ]];
    for (const [first = 0, end = 0] of parts) {
      const part = await answers(cache, one, { range: `bytes=${first}-${end}` });
      assert.equal(part.answer.status, 206);
      assertSameBytes(part.bytes, bytes.subarray(first, end + 1));
    }
    assert.equal((await cache.get(one, { range: `bytes=${last + 1}-` })).status, 416);
  }
  assert.equal(upstream.count(/^\/nar\//), 1);
});

Deno.test("nar forms: a former name saves the stored file at most, in stats and in pulls", async () => {
  await using world = await pulled();
  const { cache, path } = world;
  const { file, name } = await recompressed(cache, object);
  const figures = async () => {
    const { saved_bytes, served_bytes } = (await (await cache.get("/stats")).json()).traffic;
    const [pull] = await (await cache.get("/pulls")).json();
    return [saved_bytes, served_bytes, pull.saved_bytes, pull.bytes];
  };
  /** Gets a NAR file, and the bytes that count for it, once they do. */
  const got = async (path: string, headers = {}) => {
    const before = await figures();
    const sent = (await (await cache.get(path, headers)).bytes()).length;
    let counted: readonly number[] = [];
    await eventually("its bytes count", async () => {
      counted = (await figures()).map((bytes, index) => bytes - (before[index] ?? 0));
      return counted[1] === sent && counted[3] === sent;
    });
    return { sent, saved: [counted[0], counted[2]] };
  };

  const whole = await got(path);
  assert.ok(whole.sent > file.length);
  assert.deepEqual(whole.saved, [file.length, file.length]);

  const half = whole.sent >> 1;
  const part = await got(path, { range: `bytes=0-${half - 1}` });
  assert.equal(part.sent, half);
  const saved = Math.round(half * file.length / whole.sent);
  assert.deepEqual(part.saved, [saved, saved]);

  const kept = await got(`/nar/${name}`);
  assert.deepEqual(kept.saved, [file.length, file.length]);
});

Deno.test("nar forms: a zstd name gets zstd of a NAR whose file was evicted", async () => {
  await using world = await pulled();
  const { cache, path } = world;
  const { name, former } = await recompressed(cache, object);
  await cache.request("DELETE", `/nar/${name}`);
  assert.equal((await cache.metadata.findNar(former))?.kept, undefined);

  const cold = await answers(cache, `/nar/${name}`);
  assert.equal(cold.answer.status, 200);
  assertSameBytes(await decompress(cold.bytes, "zstd"), nar);
  await cache.downloadsOver();
  assert.deepEqual(linesOf(await cache.narinfo(storePathHash), "Compression"), ["xz"]);
  const warm = await answers(cache, `/nar/${name}`);
  assert.equal(warm.answer.headers.get("x-cache"), "HIT");
  assertSameBytes(warm.bytes, cold.bytes);
  assertSameBytes((await answers(cache, path)).bytes, world.before);
});

Deno.test("nar forms: wrong bytes for a zstd name never come whole", async () => {
  await using world = await pulled();
  const { cache, upstream } = world;
  const { name } = await recompressed(cache, object);
  await cache.request("DELETE", `/nar/${name}`);
  upstream.breakNar(corruptByteAt(300_000));
  await using server = cache.listen();
  const answer = await rawRequest(server.port, requestText("GET", `/nar/${name}`))
    .catch(() => undefined);
  assert.equal(answer?.complete === true && answer.status < 300, false);
});

Deno.test("nar forms: a part of wrong bytes for a zstd name never comes whole", async () => {
  await using world = await pulled();
  const { cache, upstream } = world;
  const { name } = await recompressed(cache, object);
  await cache.request("DELETE", `/nar/${name}`);
  upstream.breakNar(corruptByteAt(300_000));
  await using server = cache.listen();
  for (const range of ["bytes=0-9", "bytes=290000-310000", "bytes=600000-"]) {
    const request = requestText("GET", `/nar/${name}`, { Range: range });
    const answer = await rawRequest(server.port, request).catch(() => undefined);
    assert.equal(answer?.complete === true && answer.status < 300, false, range);
  }
});

for (const compression of ["xz", "none", "bzip2"] as const) {
  const without = hasZstdEncoder() ? available(compression) : "this Deno writes no zstd";
  testWhere(
    without,
    `nar forms: a file that is damaged in zstd never comes whole in ${compression}, a part before does`,
    async () => {
      await using world = await pulled(compression);
      const { cache, path } = world;
      const file = Uint8Array.from(
        zstdCompressSync(nar, { params: { [constants.ZSTD_c_checksumFlag]: 1 } }),
      );
      // Bytes that no compressor makes smaller lie in the file as they are: only the sum is wrong.
      corrupt(file, file.length - 1_000);
      await recompressed(cache, object, file);
      await using server = cache.listen();
      const whole = await rawRequest(server.port, requestText("GET", path)).catch(() => undefined);
      assert.equal(whole?.complete === true && whole.status < 300, false);

      const part = await cache.get(path, { range: "bytes=0-400000" });
      assert.equal(part.status, 206);
      const speaker = new Bzip2Speaker(nar.length);
      const spoken = compression === "bzip2"
        ? await new Blob([...speaker.speak(nar), speaker.end()]).bytes()
        : world.before;
      assertSameBytes(await part.bytes(), spoken.subarray(0, 400_001));
    },
  );
}

function corrupt(bytes: Uint8Array, at: number): void {
  bytes[at] = (bytes[at] ?? 0) ^ 1;
}

Deno.test("nar forms: a larder that lost its rows answers a zstd name from the upstream's xz", async () => {
  await using world = await pulled();
  const { name } = await recompressed(world.cache, object);
  await using lost = await TestCache.open({ upstreams: [world.upstream] });
  const { answer, bytes } = await answers(lost, `/nar/${name}`);
  assert.equal(answer.status, 200);
  assertSameBytes(await decompress(bytes, "zstd"), nar);

  world.upstream.breakNar(corruptByteAt(300_000));
  await using server = lost.listen();
  const wrong = await rawRequest(server.port, requestText("GET", `/nar/${name}`))
    .catch(() => undefined);
  assert.equal(wrong?.complete === true && wrong.status < 300, false);
});

Deno.test("nar forms: a zstd name that no upstream can answer is 404", async () => {
  await using upstream = await fakeUpstream({ objects: [] });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = `/nar/${object.narHash}.nar.zst`;
  assert.deepEqual([(await cache.head(path)).status, (await cache.get(path)).status], [404, 404]);
});

Deno.test("nar forms: a client that pushes finds its file after it is zstd", async () => {
  await using cache = await uploadCache();
  const one = await pushOf(object, { compression: "xz" });
  assert.deepEqual(await push(cache, one), [201, 201]);
  const path = await cache.narPath(storePathHash);
  await recompressed(cache, object);

  assert.deepEqual(await push(cache, one), [200, 200]);
  const { bytes } = await answers(cache, `/upload${path}`);
  assertSameBytes(bytes, (await answers(cache, path)).bytes);
  assert.equal(
    await cache.metadata.findNar(await formerName(cache)).then((row) => row?.kept?.form),
    "zstd",
  );
});

Deno.test("nar forms: a transfer that does not end whole is noted in the row", async () => {
  // No socket's buffers hold it.
  const large = makeStoreObject({ name: "large-1.0", size: 32 << 20 });
  await using world = await pulled("xz", large);
  const { cache, path } = world;
  await using server = cache.listen();
  const row = await cache.metadata.findNarinfo(large.storePathHash);
  assert.ok(row);
  const brokenAtMs = async () => (await cache.metadata.findNar(row.narName))?.brokenAtMs;
  assert.equal(await brokenAtMs(), undefined);
  const connection = await Deno.connect({ port: server.port });
  await connection.write(new TextEncoder().encode(requestText("GET", path)));
  await connection.read(new Uint8Array(10));
  connection.close();
  await eventually("the break is in the row", async () => await brokenAtMs() !== undefined);
});
