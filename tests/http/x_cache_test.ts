import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

type Headers = Readonly<Record<string, string>>;

const object = makeStoreObject({ name: "thing", size: 50_000 });
const NARINFO = `/${object.storePathHash}.narinfo`;
const ABSENT = "0".repeat(32);
const LOG = `/log/${object.storePathHash}-thing.drv`;
const FOREIGN = { host: "evil.example", origin: "http://evil.example" };

Deno.test("X-Cache: served and absent paths have it; refused requests have none", async () => {
  const documents = { [LOG]: "built\n" };
  await using upstream = await fakeUpstream({ objects: [object], documents, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream], allowDelete: true });
  const nar = await cache.narPath(object.storePathHash);
  await (await cache.get(nar)).bytes();
  await cache.downloadsOver();
  const cases: readonly (readonly [string, string, Headers, number, string | null])[] = [
    ["GET", NARINFO, {}, 200, "HIT"],
    ["GET", nar, {}, 200, "HIT"],
    ["GET", nar, { range: "bytes=0-9" }, 206, "HIT"],
    ["GET", nar, { "if-none-match": "*" }, 304, "HIT"],
    ["GET", LOG, {}, 200, "MISS"],
    ["GET", LOG, { "if-none-match": "*" }, 304, "HIT"],
    ["GET", `/${ABSENT}.narinfo`, {}, 404, "MISS"],
    ["GET", `/${ABSENT}.narinfo`, {}, 404, "HIT"],
    ["GET", `/nar/${ABSENT}${"0".repeat(20)}.nar`, {}, 404, "MISS"],
    ["GET", `/${ABSENT}.ls`, {}, 404, "MISS"],
    ["GET", nar, { range: "bytes=999999999-" }, 416, null],
    ["GET", `/nar/..%2fx`, {}, 400, null],
    ["DELETE", NARINFO, FOREIGN, 403, null],
    ["POST", nar, {}, 405, null],
    ["POST", NARINFO, {}, 405, null],
    ["PUT", LOG, {}, 405, null],
    ["GET", "/nothing/here", {}, 404, null],
    ["GET", "/nix-cache-info", {}, 200, null],
  ];
  for (const [method, path, headers, status, xCache] of cases) {
    for (const one of method === "GET" && xCache !== "MISS" ? ["HEAD", "GET"] : [method]) {
      const answer = await cache.request(one, path, headers);
      await answer.body?.cancel();
      const found = [answer.status, answer.headers.get("x-cache")];
      assert.deepEqual(found, [status, xCache], `${one} ${path} ${JSON.stringify(headers)}`);
    }
  }
});

Deno.test("X-Request-Id: a malformed request gets one, a refused body keeps its own", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await using server = cache.listen();
  const id = { "X-Request-Id": "build-7" };
  const chunked = { ...id, "Transfer-Encoding": "chunked" };
  const cases: readonly (readonly [request: string, status: number, own: boolean])[] = [
    ["hello\r\n\r\n", 400, false],
    [`GET /${"a".repeat(20_000)}`, 414, false],
    [requestText("GET", "/", { A: "a".repeat(20_000) }), 431, false],
    [requestText("GET", "/healthz", { Expect: "tea" }), 417, false],
    [requestText("GET", "/healthz", { "Content-Length": "x" }), 400, false],
    [requestText("GET", "/%2f", id), 400, true],
    [requestText("GET", "/nothing", id), 404, true],
    [requestText("PUT", "/healthz", id), 405, true],
    [requestText("POST", `/pin/${ABSENT}.narinfo`, chunked) + "no chunk\r\n", 404, true],
    [requestText("DELETE", "/gc", id).replace("Connection: close\r\n", ""), 405, true],
  ];
  for (const [request, status, own] of cases) {
    const answer = await rawRequest(server.port, request);
    assert.equal(answer.status, status, request.slice(0, 40));
    const given = answer.headers.get("x-request-id") ?? "";
    assert.match(given, own ? /^build-7$/ : /^[0-9a-f-]{13}-[0-9a-z]+$/, request.slice(0, 40));
  }
});
