import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const [first, second] = ["first", "second"].map((name) => makeStoreObject({ name }).storePathHash);
const objects = ["first", "second"].map((name) => makeStoreObject({ name }));
const UNKNOWN = "0".repeat(32);

Deno.test("pins: a kept root is pinned, listed in order, and unpinned", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  for (const hash of [first, second]) await cache.narinfo(hash ?? "");
  const statusOf = async (method: string, hash = "") =>
    (await cache.request(method, `/pin/${hash}.narinfo`)).status;

  assert.equal(await (await cache.get("/pins")).text(), "[]");
  for (const hash of [second, first, second]) assert.equal(await statusOf("POST", hash), 200);
  const listed = await cache.get("/pins");
  assert.equal(listed.headers.get("content-type"), "application/json");
  assert.deepEqual(await listed.json(), [second, first]);
  for (const hash of [second, second]) assert.equal(await statusOf("DELETE", hash), 200);
  assert.deepEqual(await (await cache.get("/pins")).json(), [first]);
});

Deno.test("pins: an unknown path cannot be pinned, and nothing is fetched for it", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  for (const hash of [first, UNKNOWN, "", "x", `e${UNKNOWN.slice(1)}`]) {
    assert.equal((await cache.request("POST", `/pin/${hash}.narinfo`)).status, 404);
    assert.equal((await cache.request("DELETE", `/pin/${hash}.narinfo`)).status, 200);
  }
  for (const name of ["%3Cscript%3E", "x%0d%0ay", "%1b[2J"]) {
    for (const method of ["POST", "DELETE"]) {
      const body = await (await cache.request(method, `/pin/${name}.narinfo`)).text();
      assert.match(body, /^(Not Found: this is no store path hash; expected .*|not pinned)\n$/);
    }
  }
  assert.equal(upstream.requests.length, 0);
  assert.deepEqual(await (await cache.get("/pins")).json(), []);
});

Deno.test("pins: a bad path gets a sentence with what is expected", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const pins = "/pins, /pins/closures, /pins/names, /pins/verify";
  const rows = [
    ["POST", `/pin/${UNKNOWN}.narinfo`, "no path with this hash is stored; fetch or upload it"],
    ["POST", "/pin/xyz.narinfo", "this is no store path hash; expected the 32 characters between"],
    ["POST", `/pin/${UNKNOWN}`, "expected /pin/{hash}.narinfo"],
    ["POST", `/pins/names?name=a&keep=1&root=${UNKNOWN}`, "no path with this hash is stored"],
    ["GET", "/pins/x", `expected ${pins}`],
    ["GET", "/pins/", `expected ${pins}`],
    ["GET", "/stats/x", "expected /stats"],
  ] as const;
  for (const [method, path, sentence] of rows) {
    const answer = await cache.request(method, path);
    assert.equal(answer.status, 404);
    const body = await answer.text();
    assert.ok(body.startsWith(`Not Found: ${sentence}`), `${path}: ${body}`);
  }
  assert.equal(await (await cache.get("/nothing/x")).text(), "Not Found\n");
});

Deno.test("pins: a pinned root stays pinned when its narinfo is gone", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.narinfo(first ?? "");
  await cache.request("POST", `/pin/${first}.narinfo`);
  const [object] = objects;
  assert.ok(object);
  await cache.metadata.apply([{ kind: "remove-narinfo", storePathHash: object.storePathHash }]);
  assert.equal((await cache.request("POST", `/pin/${first}.narinfo`)).status, 200);
  assert.deepEqual(await (await cache.get("/pins")).json(), [first]);
});

Deno.test("pins: another method is 405; HEAD of the list is its GET", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const pin = await cache.get(`/pin/${UNKNOWN}.narinfo`);
  assert.deepEqual([pin.status, pin.headers.get("allow")], [405, "POST, DELETE"]);
  assert.equal((await cache.request("DELETE", "/pins")).status, 405);
  const head = await cache.head("/pins");
  assert.deepEqual([head.status, head.headers.get("content-length")], [200, "2"]);
});
