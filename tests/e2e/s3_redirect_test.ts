import assert from "node:assert/strict";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { NIX_UNAVAILABLE, NixClient } from "../support/nix_client.ts";
import { addObjects, SHAPES } from "../support/nix_store_objects.ts";
import { testUnless } from "../support/program.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

const TOKEN = "a-token-of-the-readers";

const object = makeStoreObject({ name: "large", size: 1_000_000 });

testUnless(
  S3_UNAVAILABLE,
  "redirect: GET of a whole kept NAR alone leads to the store",
  async () => {
    if (server === undefined) return;
    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    await using larder = await startLarder({
      ...s3Flags(server.bucket()),
      "cache-storage-s3-redirect": "true",
      "cache-prefetch": "false",
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "cache-get-token": TOKEN,
      "prometheus-enabled": "true",
    });
    const { bytes } = await upstream.narFileOf(object);
    const authorization = `Bearer ${TOKEN}`;
    const get = (path: string, more: Readonly<Record<string, string>> = {}, method = "GET") => {
      const headers = { authorization, ...more };
      return fetch(`${larder.url}${path}`, { method, headers, redirect: "manual" });
    };
    const narinfo = await (await get(`/${object.storePathHash}.narinfo`)).text();
    const path = `/${/^URL: (.*)$/m.exec(narinfo)?.[1]}`;

    const miss = await get(path);
    assert.deepEqual([miss.status, await miss.bytes()], [200, bytes], "a miss has its bytes");
    await larder.logged("nar cached successfully");
    const stranger = await get(path, { authorization: "Bearer wrong" });
    assert.equal(stranger.status, 401);
    assert.equal(stranger.headers.get("location"), null);
    await stranger.body?.cancel();

    const answer = await get(path);
    assert.equal(answer.status, 307);
    assert.equal(await answer.text(), "");
    assert.equal(answer.headers.get("x-cache"), "HIT");
    assert.match(answer.headers.get("cache-control") ?? "", /^no-store/);
    const location = answer.headers.get("location") ?? "";
    assert.equal(new URL(location).searchParams.get("X-Amz-Expires"), "300");
    const followed = await fetch(location);
    assert.deepEqual([followed.status, await followed.bytes()], [200, bytes]);
    assert.equal(followed.headers.get("content-type"), "application/x-nix-nar");
    const further = await fetch(location, { headers: { range: "bytes=10-19" } });
    assert.deepEqual([further.status, await further.bytes()], [206, bytes.slice(10, 20)]);
    const line = await larder.logged("serving nar from cache", ({ status }) => status === 307);
    assert.deepEqual([line["path"], line["bytes"]], [path, bytes.length]);

    const part = await get(path, { range: "bytes=10-19" });
    assert.deepEqual([part.status, await part.bytes()], [206, bytes.slice(10, 20)]);
    const head = await get(path, {}, "HEAD");
    assert.deepEqual([head.status, head.headers.get("content-length")], [200, `${bytes.length}`]);
    const known = await get(path, { "if-none-match": head.headers.get("etag") ?? "" });
    assert.deepEqual([known.status, await known.text()], [304, ""]);
    const metrics = await (await get("/metrics")).text();
    assert.match(metrics, /^larder_nar_served_total 3$/m, "the miss, the redirect, the part");
  },
);

testUnless(S3_UNAVAILABLE || NIX_UNAVAILABLE, "redirect: a real nix pulls through it", async () => {
  if (server === undefined) return;
  using maker = new NixClient();
  using folder = tempFolder();
  const { top, paths } = await addObjects(maker, SHAPES["diamond"] ?? []);
  const key = await maker.makeKey("upstream-1");
  await maker.copyTo(folder.path, top, { compression: "xz", key });
  await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
  await using larder = await startLarder({
    ...s3Flags(server.bucket()),
    "cache-storage-s3-redirect": "true",
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    ...LONG_TIMEOUTS,
  });
  const pull = async () => {
    using client = new NixClient();
    await client.copyFrom(top, { from: [larder.url], trust: [upstream.publicKey] });
    assert.deepEqual(await client.closureOf(top), paths);
  };
  await pull();
  // A client may have a NAR before it is in the bucket. Until then there is nothing to redirect to.
  const stored = () => larder.lines.filter(({ msg }) => msg === "nar cached successfully");
  await eventually("each NAR is stored", () => stored().length === paths.length);
  await upstream.stop();
  const before = larder.lines.length;
  await pull();
  const redirects = () => larder.lines.slice(before).filter(({ status }) => status === 307);
  await eventually("each NAR was redirected", () => redirects().length >= paths.length);
  assert.equal(redirects().length, paths.length);
});
