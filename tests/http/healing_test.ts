import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { generateSecretKey, parsePublicKey } from "../../src/nix/signature.ts";
import { TrustedKeys } from "../../src/nix/trusted_keys.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { heldUntil } from "../support/faults.ts";
import { rewritten } from "../support/narinfo_faults.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const other = makeStoreObject({ name: "other-1.0" });
const objects = Array.from({ length: 8 }, (_, seed) => makeStoreObject({ name: "many", seed }));
const PATH = `/${object.storePathHash}.narinfo`;

Deno.test("healing: a path that is another file by now is fetched anew", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using again = await fakeUpstream({ dialect: "harmonia", objects: [object], stored: true });
  const keys = [upstream, again].map(({ publicKey }) => parsePublicKey(publicKey));
  await using cache = await TestCache.open({ upstreams: [upstream], trustedKeys: keys });
  const old = await cache.narPath(object.storePathHash);
  const text = (await again.narinfoOf(object)).replace(/\?hash=.*$/m, "");
  upstream.onRequest = ({ path }) => {
    if (path.endsWith(".narinfo")) return new Response(text);
    if (!path.includes("/nar/")) return undefined;
    return path.endsWith(".xz") ? new Response(null, { status: 404 }) : new Response(object.nar);
  };
  assert.equal((await cache.get(old)).status, 404);

  const mended = await cache.narPath(object.storePathHash);

  assert.notEqual(mended, old);
  assertSameBytes(await (await cache.get(mended)).bytes(), object.nar);
});

Deno.test("naming: of two NARs under one file hash each gets a URL of its own", async () => {
  await using upstream = await fakeUpstream({ objects: [object, other], stored: true });
  const { fileHash } = await upstream.narFileOf(object);
  upstream.breakNarinfo(
    rewritten((text) => text.replace(/^FileHash: .*$/m, `FileHash: sha256:${fileHash}`)),
    other,
  );
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const paths = await Promise.all(
    [object, other].map(({ storePathHash }) => cache.narPath(storePathHash)),
  );
  assert.equal(new Set(paths).size, 2);
});

Deno.test("signing: an upstream's key of our name keeps its signature", async () => {
  const key = generateSecretKey("larder.test");
  await using upstream = await fakeUpstream({ objects: [object], stored: true, key });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const served = parseNarinfo(await cache.narinfo(object.storePathHash));
  for (const publicKey of [key.publicKey, cache.secretKey.publicKey]) {
    assert.equal(new TrustedKeys([publicKey]).signerOf(served), publicKey);
  }
});

Deno.test("database: while another process locks it, requests go on", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  await using metadata = new SqliteMetadataStore(await openDatabase(path));
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], metadata });
  const locker = new DatabaseSync(path);
  locker.exec("BEGIN IMMEDIATE");

  const waiting = cache.get(PATH);
  await upstream.requested(PATH);
  for (let count = 0; count < 10; count++) {
    assert.equal((await cache.get("/healthz")).status, 200);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  locker.exec("COMMIT");
  locker.close();

  assert.equal((await waiting).status, 200);
});

Deno.test("disk: where no download can begin the NAR passes through, with a log line", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const path = await cache.narPath(object.storePathHash);
  cache.blockTempFolder();
  const answer = await cache.get(path);
  assert.equal(answer.status, 200);
  assertSameBytes(await answer.bytes(), (await upstream.narFileOf(object)).bytes);
  assert.match(String(cache.logged("error")[0]?.["detail"]), /Cannot begin download/);
});

Deno.test("disk: that nothing can be kept is said once, and that it can again", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const paths = await Promise.all(objects.map((one) => cache.narPath(one.storePathHash)));
  cache.blockTempFolder();
  for (const path of paths) assert.equal((await (await cache.get(path)).bytes()).length > 0, true);
  assert.equal(cache.logged("error").length, 1);

  await Deno.remove(cache.tempPath);
  for (const path of paths) await (await cache.get(path)).bytes();
  await cache.downloadsOver();

  const [over, ...more] = cache.log.filter(({ msg }) => msg === "nars are kept again");
  assert.deepEqual([over?.["times"], more], [objects.length, []]);
  const { problems } = await (await cache.get("/stats")).json();
  assert.ok(problems[0].over_at, "the list of problems says so, too");
  cache.blockTempFolder();
  await (await cache.get(await cache.narPath(objects[0]?.storePathHash ?? ""))).bytes();
  assert.equal(cache.logged("error").length, 1, "a kept file needs no room");
});

Deno.test("nar: HEAD is answered where the upstream knows GET alone", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.onRequest = ({ method }) =>
    method === "HEAD" ? new Response(null, { status: 405 }) : undefined;
  await using cache = await TestCache.open({ upstreams: [upstream] });
  assert.equal((await cache.head(await cache.narPath(object.storePathHash))).status, 200);
});

Deno.test("log: a line about an upstream has the id of the request", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  upstream.breakNarinfo(heldUntil(new Promise(() => {})));
  await using cache = await TestCache.open({ upstreams: [upstream], timeoutMs: 1_000 });
  await cache.get(PATH, { "x-request-id": "build-7" });
  assert.equal(cache.logged("warn")[0]?.["request_id"], "build-7");
});
