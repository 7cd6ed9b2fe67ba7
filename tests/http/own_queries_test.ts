import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const HASH = "0".repeat(32);

/** larder's own routes, and the parameters that each of their methods knows. */
const OWN: readonly (readonly [method: string, path: string, known: string])[] = [
  ["GET", "/pins", "none"],
  ["GET", "/pins/closures", "none"],
  ["GET", "/pins/names", "none"],
  ["POST", "/pins/names", "name, keep, root, keep-complete"],
  ["DELETE", "/pins/names", "name"],
  ["POST", "/pins/verify", "none"],
  ["POST", `/pin/${HASH}.narinfo`, "keep-complete"],
  ["DELETE", `/pin/${HASH}.narinfo`, "none"],
  ["POST", "/plan", "none"],
  ["GET", "/explain", "path, q"],
  ["GET", "/pulls", "client"],
  ["GET", "/pulls/x", "none"],
  ["GET", "/stats", "range"],
  ["POST", "/gc", "target, dry-run"],
];

Deno.test("own routes: an unknown or repeated parameter is 400, with what is expected", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  for (const [method, path, known] of OWN) {
    const said = async (query: string) => {
      const answer = await cache.request(method, `${path}?${query}`);
      return [answer.status, await answer.text()];
    };
    for (const name of ["keep_complete", "klient"]) {
      const line = `Bad Request: unknown parameter ${name}: expected ${known}\n`;
      assert.deepEqual(await said(`${name}=1`), [400, line], `${method} ${path}`);
    }
    const hidden = `Bad Request: unknown parameter: expected ${known}\n`;
    assert.deepEqual(await said("%3Cb%3E=1"), [400, hidden], "what is no name is not repeated");
    const [first = ""] = known.split(", ");
    if (first === "none") continue;
    const twice = `Bad Request: parameter ${first} more than once: expected it once\n`;
    assert.deepEqual(await said(`${first}=1&${first}=1`), [400, twice]);
  }
  assert.deepEqual(await (await cache.get("/pins")).json(), []);
});

Deno.test("own routes: a method that a path lacks is 405, with those that it has", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  for (
    const [method, path, allow] of [
      ["PUT", "/pins/names", "GET, HEAD, POST, DELETE"],
      ["DELETE", "/pins", "GET, HEAD"],
      ["GET", "/plan", "POST"],
      ["PUT", `/pin/${HASH}.narinfo`, "POST, DELETE"],
      ["POST", "/explain", "GET, HEAD"],
    ] as const
  ) {
    const answer = await cache.request(method, path);
    assert.deepEqual([answer.status, answer.headers.get("allow"), await answer.text()], [
      405,
      allow,
      `Method Not Allowed: expected ${allow}\n`,
    ]);
  }
});

Deno.test("own routes: what is no store path gets a sentence", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  const expected = "path, a store path or the hash of one, or q, a search";
  for (const query of ["", "?path=", "?path=hello", "?path=/etc/passwd"]) {
    const answer = await cache.get(`/explain${query}`);
    assert.deepEqual([answer.status, await answer.text()], [
      400,
      `Bad Request: expected ${expected}\n`,
    ]);
  }
});

Deno.test("binary cache protocol: what it does not know in a query changes nothing", async () => {
  const object = makeStoreObject({ name: "kept" });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  const nar = await cache.narPath(object.storePathHash);
  for (
    const path of ["/nix-cache-info", `/${object.storePathHash}.narinfo`, nar, "/healthz", "/"]
  ) {
    const answer = await cache.get(`${path}?klient=1&klient=2`);
    await answer.body?.cancel();
    assert.equal(answer.status, 200, path);
  }
  await cache.downloadsOver();
});
