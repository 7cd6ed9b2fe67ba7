import assert from "node:assert/strict";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { HeldClock } from "../../support/held_clock.ts";
import { runLarder } from "../../support/run_larder.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { TestCache } from "../../support/test_cache.ts";

const BEGIN_MS = Date.UTC(2026, 10, 27, 21, 10);
const object = makeStoreObject({ name: "firefox-145.0" });

Deno.test("larder pulls: sentences within 100 columns, JSON for programs", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using upstream = await fakeUpstream({
    objects: [object],
    stored: true,
    onRequest: ({ path }) => {
      if (path.endsWith(".narinfo")) clock.advance(8_000);
      return undefined;
    },
  });
  await using cache = await TestCache.open({ upstreams: [upstream], nowMs: () => clock.wallMs() });
  await using server = cache.listen();
  const env = { LARDER_SERVER: server.url };
  const none = await runLarder(["pulls"], { env });
  assert.deepEqual([none.status, none.out], [0, ""]);
  assert.match(none.err, /^no pull yet: one is listed once a client has asked for a path\n$/);
  assert.equal((await runLarder(["pulls", "--json"], { env })).out, "[]\n");

  await cache.request("GET", await cache.narPath(object.storePathHash));
  clock.advance(10_000);
  const { status, out, err } = await runLarder(["pulls"], { env });
  assert.deepEqual([status, err], [0, ""]);
  const [first, ...others] = out.trimEnd().split("\n");
  assert.match(first ?? "", /^127\.0\.0\.1, 21:10 UTC, firefox-145\.0, 8\.0 s: 8\.0 s waited for /);
  assert.ok(others.every((line) => line.startsWith("  ")));
  assert.ok([first, ...others].every((line) => (line?.length ?? 0) <= 100), out);

  const [json] = JSON.parse((await runLarder(["pulls", "127.0.0.1", "--json"], { env })).out);
  assert.equal(json.waiting_seconds, 8);
  const nobody = await runLarder(["pulls", "nobody"], { env });
  assert.deepEqual([nobody.status, nobody.out], [0, ""]);
  assert.match(nobody.err, /^no pull of nobody: there are those of 127\.0\.0\.1\n$/);
});

Deno.test("larder pulls: bad input gets a sentence, and nothing is sent", async () => {
  const two = await runLarder(["pulls", "one", "two"]);
  assert.deepEqual([two.status, two.out], [2, ""]);
  assert.match(two.err, /^larder: "two": unexpected argument; name one client\n/);
  const empty = await runLarder(["pulls", ""]);
  assert.deepEqual([empty.status, empty.out], [2, ""]);
  assert.match(empty.err, /^larder: CLIENT must be the name of a token or an address/);
});
