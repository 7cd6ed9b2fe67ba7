import assert from "node:assert/strict";
import { hash } from "../support/metadata_rows.ts";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { wrongFileSize } from "../support/narinfo_faults.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import type { TestCache } from "../support/test_cache.ts";
import { zstdBlocks, zstdFrame } from "../support/zstd_frames.ts";
import { AS_WRITER, type Push, push, pushOf, said, uploadCache } from "../support/uploading.ts";

const thing = makeStoreObject({ name: "thing-1.0", size: 20_000 });
const other = makeStoreObject({ name: "other-2.0", size: 20_000, seed: 3 });
/** Another NAR under the store path of `thing`. */
const twin = { ...other, storePath: thing.storePath, storePathHash: thing.storePathHash };

Deno.test("hostile upload: bytes of another hash than the name's are 422, and gone", async () => {
  await using cache = await uploadCache();
  const [one, wrong] = [await pushOf(thing), await pushOf(other)];
  const answer = await cache.put(one.narPath, wrong.file.bytes, AS_WRITER);
  const line = `expected bytes of the name's SHA-256, got ${wrong.file.fileHash}`;
  assert.deepEqual(await said(answer), [422, line]);
  await nothingKept(cache);
});

Deno.test("hostile upload: bytes that are not of their compression are 422, and gone", async () => {
  await using cache = await uploadCache();
  const bytes = new TextEncoder().encode("no zstd at all");
  const answer = await cache.put(narPathOf(bytes, ".zst"), bytes, AS_WRITER);
  const [status, line] = await said(answer);
  assert.equal(status, 422);
  assert.match(line, /^expected a NAR in zstd: /);
  await nothingKept(cache);
});

Deno.test("hostile upload: a compression that larder has not is 422 with its NAR", async () => {
  await using cache = await uploadCache();
  const magics = { lzma: "\x5d\0\0\x80\0", lzip: "LZIP\x01", lz4: "\x04\x22\x4d\x18" };
  for (const [name, magic] of Object.entries(magics)) {
    // Nix gives it the name of a NAR without compression.
    const bytes = Uint8Array.from(magic + "x".repeat(1_000), (char) => char.charCodeAt(0));
    const body = new Blob([bytes.subarray(0, 2), bytes.subarray(2)]).stream();
    const answer = await cache.put(narPathOf(bytes, ""), body, AS_WRITER);
    const [status, line] = await said(answer);
    assert.equal(status, 422, name);
    assert.match(line, new RegExp(`^expected a compression of none, xz, .*, got ${name}$`));
  }
  await nothingKept(cache);
});

Deno.test("hostile upload: a bomb is 422 once it holds a gibibyte, and gone", async () => {
  await using cache = await uploadCache();
  const bytes = zstdFrame({ window: 7 << 3, blocks: zstdBlocks(9_000) });
  const answer = await cache.put(narPathOf(bytes, ".zst"), bytes, AS_WRITER);
  const line = "expected a NAR in zstd: it holds more than 1073741824 bytes";
  assert.deepEqual(await said(answer), [422, line]);
  await nothingKept(cache);
});

const LIES: readonly (readonly [what: string, lie: (text: string) => string, line: RegExp])[] = [
  [
    "NarSize",
    (text) => text.replace(/NarSize: .*/, "NarSize: 7"),
    /^expected NarSize: 20\d+, got 7$/,
  ],
  [
    "FileSize",
    (text) => text.replace(/FileSize: .*/, "FileSize: 7"),
    /^expected FileSize: \d+, got 7$/,
  ],
  ["NarHash", withHash("NarHash"), /^expected NarHash: sha256:[0-9a-z]{52}, got sha256:0/],
  ["FileHash", withHash("FileHash"), /^expected FileHash: sha256:[0-9a-z]{52}, got sha256:0/],
  ["Compression", (text) => text.replace("zstd", "xz"), /^expected Compression: zstd, got xz$/],
  [
    "store dir",
    (text) => text.replaceAll("/nix/store", "/gnu/store"),
    /^expected a narinfo: .*StorePath/,
  ],
  ["path", (text) => text.replace(thing.storePath, other.storePath), /^expected a StorePath with /],
  ["URL outside", withUrl("../../etc/passwd"), /^expected URL: nar\//],
  ["URL elsewhere", withUrl("http://evil.test/nar/x.nar"), /^expected URL: nar\//],
  ["URL of a query", withUrl("nar/x.nar?hash=y"), /^expected URL: nar\//],
  [
    "URL of nothing",
    withUrl(`nar/${"0".repeat(52)}.nar.zst`),
    /^expected nar\/0+\.nar\.zst before/,
  ],
  ["no narinfo", () => "<html>", /^expected a narinfo: /],
  ["nothing", () => "", /^expected a narinfo: /],
  ["half a narinfo", (text) => text.slice(0, 100), /^expected a narinfo: /],
  ["a field twice", (text) => `${text}NarSize: 1\n`, /^expected a narinfo: .*twice/],
  ["a reference outside", withReferences("../../x"), /^expected a narinfo: .*reference/],
];

for (const [what, lie, line] of LIES) {
  Deno.test(`hostile upload: a narinfo that lies about ${what} is 422 and not kept`, async () => {
    await using cache = await uploadCache();
    const one = await pushOf(thing);
    await (await cache.put(one.narPath, one.file.bytes, AS_WRITER)).text();
    const answer = await cache.put(one.narinfoPath, lie(one.narinfo), AS_WRITER);
    const [status, found] = await said(answer);
    assert.equal(status, 422);
    assert.match(found, line);
    assert.equal(await cache.metadata.findNarinfo(thing.storePathHash), undefined);

    const right = await cache.put(one.narinfoPath, one.narinfo, AS_WRITER);
    assert.deepEqual(await said(right), [201, "stored"]);
  });
}

Deno.test("hostile upload: a narinfo before its NAR is 422", async () => {
  await using cache = await uploadCache();
  const one = await pushOf(thing);
  const answer = await cache.put(one.narinfoPath, one.narinfo, AS_WRITER);
  const url = one.narPath.slice("/upload/".length);
  assert.deepEqual(await said(answer), [
    422,
    `expected ${url} before its narinfo, and it is not here`,
  ]);
});

Deno.test("hostile upload: another NAR of a path that is here is 409", async () => {
  await using upstream = await fakeUpstream({ objects: [thing], stored: true });
  const bad = await pushOf(twin as typeof thing);
  for (const from of ["upstream", "upload"]) {
    await using cache = await uploadCache({ upstreams: from === "upstream" ? [upstream] : [] });
    if (from === "upload") await push(cache, await pushOf(thing));
    const before = await cache.narinfo(thing.storePathHash);
    await (await cache.put(bad.narPath, bad.file.bytes, AS_WRITER)).text();
    const answer = await cache.put(bad.narinfoPath, bad.narinfo, AS_WRITER);
    const line = `expected NarHash sha256:${thing.narHash}, as this path is here with it`;
    assert.deepEqual(await said(answer), [409, line]);
    assert.equal(await cache.narinfo(thing.storePathHash), before);
  }
});

Deno.test("hostile upload: other references of a path that is here are 409", async () => {
  await using cache = await uploadCache();
  const one = await pushOf(thing);
  await push(cache, one);
  const text = withReferences(other.baseName)(one.narinfo);
  const answer = await cache.put(one.narinfoPath, text, AS_WRITER);
  assert.deepEqual(await said(answer), [409, "expected References:, as this path is here with it"]);
  const size = one.narinfo.replace(/NarSize: .*/, "NarSize: 7");
  const line = `expected NarSize: ${thing.narSize}, as this path is here with it`;
  assert.deepEqual(await said(await cache.put(one.narinfoPath, size, AS_WRITER)), [409, line]);
  assert.deepEqual(await cache.metadata.referencesOf(thing.storePathHash), []);
});

Deno.test("hostile upload: of many NARs for one path at once one wins", async () => {
  await using cache = await uploadCache();
  const rivals: Push[] = [];
  for (let seed = 0; seed < 8; seed++) {
    const object = makeStoreObject({ name: "rival", size: 5_000, seed });
    const { storePath, storePathHash } = thing;
    rivals.push(await pushOf({ ...object, storePath, storePathHash } as typeof thing));
  }
  const nars = rivals.map((one) => cache.put(one.narPath, one.file.bytes, AS_WRITER));
  for (const answer of await Promise.all(nars)) assert.equal((await said(answer))[0], 201);
  const answers = await Promise.all(
    rivals.map((one) => cache.put(one.narinfoPath, one.narinfo, AS_WRITER)),
  );
  const statuses = await Promise.all(answers.map(async (answer) => (await said(answer))[0]));
  assert.deepEqual(statuses.toSorted(), [201, ...Array(7).fill(409)]);
  const winner = rivals[statuses.indexOf(201)];
  assert.ok((await cache.narinfo(thing.storePathHash)).includes(winner?.object.narHash ?? "-"));
});

const NAMES = ["x.nar.zst", "..%2f..%2fx", "%2e%2e", "..", ".nar", `${"0".repeat(52)}.nar.lz4`];

for (const name of [...NAMES, `${"0".repeat(52)}-${"0".repeat(32)}.nar.zst`]) {
  Deno.test(`hostile upload: a NAR named ${name} is 4xx and writes nothing`, async () => {
    await using cache = await uploadCache();
    const answer = await cache.put(`/upload/nar/${name}`, "bytes", AS_WRITER);
    const [status] = await said(answer);
    assert.ok(status >= 400 && status < 500, String(status));
    await nothingKept(cache);
  });
}

Deno.test("hostile upload: malformed chunks are 400, of a NAR and of a document", async () => {
  await using cache = await uploadCache();
  await using server = cache.listen();
  const { narPath } = await pushOf(thing);
  for (const path of [narPath, `/upload/log/${thing.baseName}.drv`]) {
    for (const chunks of ["xyz\r\n", "1\r\nab\r\n", `${"f".repeat(17)}\r\n`]) {
      const head = requestText("PUT", path, { ...AS_WRITER, "Transfer-Encoding": "chunked" });
      assert.equal((await rawRequest(server.port, head + chunks)).status, 400);
    }
  }
  await nothingKept(cache);
});

Deno.test("hostile upload: part of a file, or an encoded one, is no file", async () => {
  await using cache = await uploadCache();
  const { narPath, file: { bytes } } = await pushOf(thing);
  const headers = { ...AS_WRITER, "content-range": "bytes 0-9/100" };
  assert.equal((await said(await cache.put(narPath, bytes, headers)))[0], 400);
  const encoded = { ...AS_WRITER, "content-encoding": "gzip" };
  assert.equal((await said(await cache.put(narPath, bytes, encoded)))[0], 415);
  await nothingKept(cache);
});

Deno.test("hostile upload: a narinfo over the limit is 413, however it is packed", async () => {
  await using cache = await uploadCache();
  const { narinfoPath } = await pushOf(thing);
  const large = "x".repeat(3_000_000);
  assert.equal((await said(await cache.put(narinfoPath, large, AS_WRITER)))[0], 413);
  const bombs = [
    ["gzip", new Uint8Array(gzipSync(new Uint8Array(64 << 20)))],
    ["zstd", zstdFrame({ window: 7 << 3, blocks: zstdBlocks(9_000) })],
  ] as const;
  for (const [encoding, bytes] of bombs) {
    const headers = { ...AS_WRITER, "content-encoding": encoding };
    const [status] = await said(await cache.put(narinfoPath, bytes, headers));
    assert.ok(status === 413 || status === 422, String(status));
  }
});

Deno.test("hostile upload: a lying upstream does not keep the name of a pushed NAR", async () => {
  await using upstream = await fakeUpstream({ objects: [thing], stored: true });
  upstream.breakNarinfo(wrongFileSize());
  await using cache = await uploadCache({ upstreams: [upstream] });
  await cache.narinfo(thing.storePathHash);
  const claimed = await pushOf(thing, { compression: "xz" });
  const sameBytes = { ...thing, ...pathOf(other) };
  const one = await pushOf(sameBytes as typeof thing, { compression: "xz" });
  assert.equal(one.narPath, claimed.narPath);
  assert.deepEqual(await push(cache, one), [201, 201]);
  const nar = await cache.get(await cache.narPath(other.storePathHash));
  assertSameBytes(await nar.bytes(), one.file.bytes);
});

function pathOf({ storePath, storePathHash, baseName }: typeof thing) {
  return { storePath, storePathHash, baseName };
}

function withHash(field: string) {
  return (text: string) =>
    text.replace(new RegExp(`^${field}: .*`, "m"), `${field}: sha256:${"0".repeat(52)}`);
}

function withUrl(url: string) {
  return (text: string) => text.replace(/^URL: .*/m, `URL: ${url}`);
}

function withReferences(references: string) {
  return (text: string) => text.replace(/^References: .*/m, `References: ${references}`);
}

function narPathOf(bytes: Uint8Array, extension: string): string {
  const hash = sha256FromDigest(createHash("sha256").update(bytes).digest());
  return `/upload/nar/${hash}.nar${extension}`;
}

async function nothingKept(cache: TestCache): Promise<void> {
  assert.deepEqual([await cache.narNames(), cache.growingFiles(), cache.bytesOnDisk()], [
    [],
    [],
    0,
  ]);
  assert.equal((await cache.metadata.stock()).keptBytes, 0);
  assert.equal(cache.space.budget.reservedBytes, 0);
}

Deno.test("hostile upload: above 10,000 references it is 422, and no row is written", async () => {
  await using cache = await uploadCache();
  const one = await pushOf(thing);
  await (await cache.put(one.narPath, one.file.bytes, AS_WRITER)).text();
  const withReferences = (count: number) => {
    const hashes = Array.from({ length: count }, (_, index) => hash(`reference ${index}`));
    const names = hashes.map((one) => `${one}-r`).sort().join(" ");
    return one.narinfo.replace(/^References:.*$/m, `References: ${names}`);
  };
  const answer = await cache.put(one.narinfoPath, withReferences(10_001), AS_WRITER);
  assert.deepEqual(await said(answer), [422, "expected at most 10000 references, got 10001"]);
  assert.equal(await cache.metadata.findNarinfo(thing.storePathHash), undefined);
  const largest = await cache.put(one.narinfoPath, withReferences(10_000), AS_WRITER);
  assert.deepEqual(await said(largest), [201, "stored"]);
  assert.equal((await cache.metadata.referencesOf(thing.storePathHash)).length, 10_000);
});
