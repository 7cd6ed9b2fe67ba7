import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const HASH = "0".repeat(32);
const NOBODY = { upstreams: [] } as const;

Deno.test("nix-cache-info: three exact lines, with every upstream down", async () => {
  await using upstream = await fakeUpstream();
  await using cache = await TestCache.open({ upstreams: [upstream], priority: 17 });
  await upstream.stop();
  const answer = await cache.get("/nix-cache-info");
  assert.equal(answer.status, 200);
  assert.equal(await answer.text(), "StoreDir: /nix/store\nWantMassQuery: 1\nPriority: 17\n");
  assert.equal(answer.headers.get("content-type"), "text/x-nix-cache-info");
});

Deno.test("pubkey: one line with our public key; 404 where nothing is signed", async () => {
  await using cache = await TestCache.open(NOBODY);
  assert.equal(
    await (await cache.get("/pubkey")).text(),
    `${cache.secretKey.publicKey.text}\n`,
  );
  await using unsigned = await TestCache.open({ ...NOBODY, secretKey: undefined });
  assert.equal((await unsigned.get("/pubkey")).status, 404);
});

Deno.test("healthz and readyz: 200 with every upstream down", async () => {
  await using cache = await TestCache.open({ upstreams: ["http://127.0.0.1:1"] });
  for (const path of ["/healthz", "/readyz"]) {
    assert.equal((await cache.get(path)).status, 200);
    assert.equal((await cache.head(path)).status, 200);
  }
});

Deno.test("pipeline: a PUT that is not allowed is told where uploads go", async () => {
  for (const allowed of [false, true]) {
    const uploads = { allowed, keys: [], requireSignature: false };
    await using cache = await TestCache.open({ ...NOBODY, uploads });
    const paths = [`/${HASH}.narinfo`, `/nar/${"0".repeat(52)}.nar`, "/nix-cache-info"];
    if (!allowed) paths.push(`/upload/${HASH}.narinfo`);
    for (const path of paths) {
      const answer = await cache.put(path, "x");
      assert.equal(answer.status, 405, path);
      const text = await answer.text();
      assert.match(text, /^Method Not Allowed: upload below \/upload,.*\n$/, path);
      assert.equal(text.includes("--cache-allow-put-verb"), !allowed, path);
    }
    const posted = await cache.request("POST", `/${HASH}.narinfo`);
    assert.deepEqual([posted.status, await posted.text()], [405, "Method Not Allowed\n"]);
  }
});

Deno.test("pipeline: every answer has an id, the caller's if short and plain", async () => {
  await using cache = await TestCache.open(NOBODY);
  const paths = ["/nix-cache-info", `/${HASH}.narinfo`, "/nar/x", "/nothing", "/%2f", "/healthz"];
  const ids = new Set<string | null>();
  for (const path of paths) {
    const own = await cache.get(path, { "x-request-id": "build-7_a.b" });
    assert.equal(own.headers.get("x-request-id"), "build-7_a.b");
    for (const odd of ["", "a b", "x".repeat(65), "ä", 'a"b']) {
      const id = (await cache.get(path, { "x-request-id": odd })).headers.get("x-request-id");
      assert.match(id ?? "", /^[A-Za-z0-9._-]{1,64}$/);
      ids.add(id);
    }
  }
  assert.equal(ids.size, paths.length * 5);
});

Deno.test("pipeline: another method on a known path is 405 with the allowed ones", async () => {
  await using cache = await TestCache.open(NOBODY);
  for (const path of ["/nix-cache-info", `/${HASH}.narinfo`, "/nar/x.nar", "/healthz"]) {
    for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"]) {
      const answer = await cache.request(method, path);
      assert.deepEqual([answer.status, answer.headers.get("allow")], [405, "GET, HEAD"]);
    }
  }
});

Deno.test("pipeline: a failure of ours is 404 to a build, and why only the log tells", async () => {
  await using cache = await TestCache.open(NOBODY);
  await cache.metadata[Symbol.asyncDispose]();
  const answer = await cache.get(`/${HASH}.narinfo`);
  assert.deepEqual([answer.status, answer.headers.get("x-cache")], [404, "MISS"]);
  assert.equal(await answer.text(), "Not Found\n");
  assert.equal(cache.logged("error")[0]?.["error"], "Cannot use metadata: the database is closed");
});

/** Request targets as they come over the wire, and their responses. */
const HOSTILE: readonly (readonly [target: string, status: RegExp])[] = [
  ["/../../etc/passwd", /^404$/],
  ["/nar/../../etc/passwd", /^404$/],
  ["/nar/%2e%2e/%2e%2e/etc/passwd", /^404$/],
  ["/nar/..%2f..%2fetc%2fpasswd", /^400$/],
  ["/nar/%2Fetc%2Fpasswd", /^400$/],
  ["//etc/passwd", /^404$/],
  [`//${HASH}.narinfo`, /^404$/],
  [`/./${HASH}.narinfo`, /^404$/],
  ["/a%00b", /^400$/],
  [`/${HASH}.narinfo%00`, /^400$/],
  ["/%", /^400$/],
  ["/%zz", /^400$/],
  ["/%ff", /^400$/],
  ["/\\..\\etc", /^400$/],
  ["/nar/..\\x.nar", /^400$/],
  [`/${HASH}.narinfo?x=/../y`, /^404$/],
  ["*", /^4\d\d$/],
  ["http://other.example/healthz", /^(200|4\d\d)$/],
  [`/${"x".repeat(5_000)}`, /^404$/],
  ["/" + "a/".repeat(5_000), /^404$/],
];

for (const [target, status] of HOSTILE) {
  Deno.test(`pipeline: ${JSON.stringify(target.slice(0, 60))} finds no file of ours`, async () => {
    await using cache = await TestCache.open(NOBODY);
    await using server = cache.listen();
    const answer = await rawRequest(server.port, requestText("GET", target));
    assert.match(String(answer.status), status);
    const body = new TextDecoder().decode(answer.body);
    assert.match(body, /^(Not Found|Bad Request(: the path has [a-z, ]+)?|OK)?\n?$/);
  });
}

Deno.test("pipeline: requests one behind the other on a connection are all answered", async () => {
  const object = makeStoreObject({ name: "thing" });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  const one = `GET /${object.storePathHash}.narinfo HTTP/1.1\r\nHost: x\r\n\r\n`;
  const last = requestText("GET", "/healthz");
  const { status, complete } = await rawRequest(server.port, one + one + last);
  assert.deepEqual([status, complete], [200, true]);
});
