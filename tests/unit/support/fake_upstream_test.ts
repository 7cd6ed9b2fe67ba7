import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { formatSha256, sha256FromDigest } from "../../../src/nix/hash.ts";
import { parseNarinfo } from "../../../src/nix/narinfo_parse.ts";
import { parsePublicKey } from "../../../src/nix/signature.ts";
import { TrustedKeys } from "../../../src/nix/trusted_keys.ts";
import { decompress } from "../../support/decompressors.ts";
import { type Dialect, DIALECTS } from "../../support/dialects.ts";
import { dialectAvailable, fakeUpstream } from "../../support/fake_upstream.ts";
import { testUnless } from "../../support/program.ts";
import { rawRequest, requestText } from "../../support/raw_http.ts";
import { assertSameBytes } from "../../support/same_bytes.ts";
import { chain, makeStoreObject } from "../../support/store_object.ts";

const HELLO = makeStoreObject({ name: "hello", deriver: true });

function nameOf(bytes: Uint8Array): string {
  return formatSha256(sha256FromDigest(createHash("sha256").update(bytes).digest()));
}

for (const dialect of Object.keys(DIALECTS) as Dialect[]) {
  testUnless(
    dialectAvailable(dialect),
    `${dialect}: each narinfo verifies, and its URL leads to the NAR that it describes`,
    async () => {
      const objects = [...chain(3), makeStoreObject({ name: "self", selfReference: true }), HELLO];
      await using upstream = await fakeUpstream({ dialect, objects });
      const keys = new TrustedKeys([parsePublicKey(upstream.publicKey)]);

      for (const object of objects) {
        const text = await (await fetch(`${upstream.url}/${object.storePathHash}.narinfo`)).text();
        const narinfo = parseNarinfo(text);
        const { pathname } = new URL(`${upstream.url}/`);
        const file = await rawRequest(
          upstream.port,
          requestText("GET", `${pathname}${narinfo.url}`),
        );

        assert.equal(text, await upstream.narinfoOf(object));
        assert.notEqual(keys.signerOf(narinfo), undefined);
        assert.deepEqual(narinfo.references, object.references);
        assert.equal(file.complete, true);
        if (narinfo.fileSize !== undefined) assert.equal(file.body.length, narinfo.fileSize);
        if (narinfo.fileHash) assert.equal(nameOf(file.body), formatSha256(narinfo.fileHash));
        const nar = await decompress(file.body, narinfo.compression);
        assert.equal(nar.length, narinfo.narSize);
        assert.equal(nameOf(nar), formatSha256(narinfo.narHash));
      }
    },
  );
}

Deno.test("an upstream switched off refuses, and serves again on the same port", async () => {
  await using upstream = await fakeUpstream({ dialect: "nix-serve", objects: [HELLO] });
  const url = `${upstream.url}/${HELLO.storePathHash}.narinfo`;
  await (await fetch(url)).text();

  await upstream.stop();
  await assert.rejects(fetch(url), TypeError);
  await upstream.start();

  assert.equal(await (await fetch(url)).text(), await upstream.narinfoOf(HELLO));
  assert.equal(upstream.count(`/${HELLO.storePathHash}.narinfo`, "GET"), 2);
});

Deno.test("nix-cache-info has the priority that the test sets, or is not there", async () => {
  await using upstream = await fakeUpstream({ dialect: "attic", priority: 7 });
  const url = `${upstream.url}/nix-cache-info`;

  assert.match(await (await fetch(url)).text(), /^StoreDir: \/nix\/store\n.*\nPriority: 7\n$/);
  upstream.priority = "absent";
  const answer = await fetch(url);
  await answer.body?.cancel();

  assert.equal(answer.status, 404);
  assert.equal(upstream.count("/nix-cache-info"), 2);
});

Deno.test("harmonia and snix encode a NAR on request, and send ranges of it as it is", async () => {
  for (const dialect of ["harmonia", "snix"] as const) {
    await using upstream = await fakeUpstream({ dialect, objects: [HELLO] });
    const path = `/${await upstream.narUrlOf(HELLO)}`;
    const ask = (headers: Record<string, string>) =>
      rawRequest(upstream.port, requestText("GET", path, headers));

    const plain = await ask({});
    const encoded = await ask({ "Accept-Encoding": "br;q=0, gzip;q=0, zstd" });
    const range = await ask({ "Accept-Encoding": "zstd", "Range": "bytes=5-9" });

    assert.deepEqual(plain.body, HELLO.nar);
    assert.equal(plain.headers.get("content-length"), String(HELLO.narSize));
    assert.equal(encoded.headers.get("content-encoding"), "zstd");
    assert.deepEqual(await decompress(encoded.body, "zstd"), HELLO.nar);
    assert.equal(range.status, 206);
    assert.equal(range.headers.get("content-range"), `bytes 5-9/${HELLO.narSize}`);
    assert.deepEqual(range.body, HELLO.nar.slice(5, 10));
  }
});

Deno.test("a NAR URL that has a query is not served without it", async () => {
  for (const [dialect, status] of [["snix", 400], ["harmonia", 404]] as const) {
    await using upstream = await fakeUpstream({ dialect, objects: [HELLO] });
    const [path] = (await upstream.narUrlOf(HELLO)).split("?");

    const answer = await rawRequest(upstream.port, requestText("GET", `/${path}`));

    assert.equal(answer.status, status);
  }
});

Deno.test("HEAD has the length of GET, and a range beyond the end is 416", async () => {
  await using upstream = await fakeUpstream({ objects: [HELLO] });
  const path = `/${await upstream.narUrlOf(HELLO)}`;
  const { bytes } = await upstream.narFileOf(HELLO);

  const head = await rawRequest(upstream.port, requestText("HEAD", path));
  const beyond = await rawRequest(
    upstream.port,
    requestText("GET", path, { "Range": `bytes=${bytes.length}-` }),
  );

  assert.equal(head.headers.get("content-length"), String(bytes.length));
  assert.equal(head.body.length, 0);
  assert.equal(beyond.status, 416);
  assert.equal(beyond.headers.get("content-range"), `bytes */${bytes.length}`);
});

Deno.test("onRequest can answer in place of the upstream, and counts requests", async () => {
  await using upstream = await fakeUpstream({
    dialect: "nix-serve",
    objects: [HELLO],
    onRequest: (_request, index) => index === 0 ? new Response("busy", { status: 503 }) : undefined,
  });
  const url = `${upstream.url}/${HELLO.storePathHash}.narinfo`;

  const first = await fetch(url);
  const second = await fetch(url);

  assert.deepEqual([first.status, await first.text()], [503, "busy"]);
  assert.deepEqual([second.status, await second.text()], [200, await upstream.narinfoOf(HELLO)]);
});

Deno.test("a mistake in onRequest reaches the test", async () => {
  const upstream = await fakeUpstream({
    onRequest: () => assert.fail("this request should not come"),
  });

  await assert.rejects(fetch(upstream.url), TypeError);

  await assert.rejects(async () => await upstream[Symbol.asyncDispose](), /should not come/);
});

Deno.test("xz and zstd need no program: bytes that are only stored decode as well", async () => {
  const big = makeStoreObject({ name: "big", size: 300_001 });
  for (const dialect of ["nixos", "cachix", "attic"] as const) {
    await using upstream = await fakeUpstream({ dialect, objects: [big], stored: true });

    const answer = await fetch(`${upstream.url}/${await upstream.narUrlOf(big)}`);

    const compression = parseNarinfo(await upstream.narinfoOf(big)).compression;
    assertSameBytes(await decompress(await answer.bytes(), compression), big.nar);
  }
});
