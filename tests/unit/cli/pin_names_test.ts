import assert from "node:assert/strict";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { runLarder } from "../../support/run_larder.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { TestCache } from "../../support/test_cache.ts";

const objects = ["one", "two", "three"].map((name) => makeStoreObject({ name }));
const [one, two, three] = objects.map(({ storePathHash }) => storePathHash);
const UNKNOWN = "0".repeat(32);

/** Runs the command against a cache that has the objects. */
async function scene() {
  const resources = new AsyncDisposableStack();
  const upstream = resources.use(await fakeUpstream({ objects, stored: true }));
  const cache = resources.use(await TestCache.open({ upstreams: [upstream] }));
  const server = resources.use(cache.listen());
  for (const { storePathHash } of objects) await cache.narinfo(storePathHash);
  return {
    run: (...words: readonly (string | undefined)[]) =>
      runLarder(words.map(String), { env: { LARDER_SERVER: server.url } }),
    pins: async () => await (await cache.get("/pins")).json(),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

Deno.test("larder pin --name: the newest stay, and larder pins shows what holds each", async () => {
  await using at = await scene();
  assert.equal((await at.run("pin", one)).status, 0);
  for (const root of [one, two, three]) {
    const { status, out, err } = await at.run("pin", "--name", "host/a", "--keep=2", root);
    assert.deepEqual([status, out, err], [0, `pinned ${root} under host/a\n`, ""]);
  }
  const both = await at.run("pin", "--name", "ci/b+c@d", "--keep", "2", one, two);
  assert.equal(both.out, `pinned ${one} under ci/b+c@d\npinned ${two} under ci/b+c@d\n`);
  const { out } = await at.run("pins");
  const [head, ...rows] = out.trimEnd().split("\n");
  assert.match(head ?? "", /PINNED +UNDER$/);
  assert.deepEqual(rows.slice(0, 3).map((row) => row.split(/\d{4}-\d\d-\d\d {2}/)[1]), [
    "ci/b+c@d, by hand",
    "ci/b+c@d, host/a",
    "host/a",
  ]);
  const told = JSON.parse((await at.run("pins", "--json")).out);
  assert.deepEqual(told[1].under, ["ci/b+c@d", "host/a"]);
  assert.deepEqual(told.map(({ rolls = false }) => rolls), [false, true, true]);
});

Deno.test("larder unpin --name: the name ends, other pins stay; an unknown one is named", async () => {
  await using at = await scene();
  await at.run("pin", one);
  await at.run("pin", "--name", "a", "--keep", "3", one, two, three);
  await at.run("pin", "--name", "b", "--keep", "1", three);
  assert.deepEqual(await at.run("unpin", "--name", "a"), {
    ...{ status: 0, out: "unpinned a\n", err: "" },
  });
  assert.deepEqual(await at.pins(), [one, three]);
  assert.deepEqual(await at.run("unpin", "--name", "a"), {
    ...{ status: 1, out: "" },
    err: "larder: nothing is pinned under a; larder pins lists the names\n",
  });
});

Deno.test("larder pin --name: a path that is not here is named, and rolls nothing", async () => {
  await using at = await scene();
  await at.run("pin", "--name", "a", "--keep", "1", one);
  const { status, err } = await at.run("pin", "--name", "a", "--keep", "1", UNKNOWN);
  assert.equal(status, 1);
  assert.match(err, /the cache has no such path; fetch it first: larder warm 0{32}\n$/);
  assert.deepEqual(await at.pins(), [one]);
});

const BAD: readonly (readonly [string, readonly string[], RegExp])[] = [
  ["a name alone", ["pin", "--name", "a", UNKNOWN], /--name: expected --keep with it, from 1 to/],
  ["a number alone", ["pin", "--keep", "3", UNKNOWN], /--keep: expected --name with it, such as/],
  ["keep 0", ["pin", "--name", "a", "--keep", "0", UNKNOWN], /a whole number from 1 to 100/],
  ["keep 101", ["pin", "--name", "a", "--keep", "101", UNKNOWN], /a whole number from 1 to 100/],
  ["keep x", ["pin", "--name", "a", "--keep", "x", UNKNOWN], /a whole number from 1 to 100/],
  [
    "more paths than stay",
    ["pin", "--name", "a", "--keep", "1", UNKNOWN, "1".repeat(32)],
    /--keep 1: got 2 paths, and the first would go at once/,
  ],
  ["no path", ["pin", "--name", "a", "--keep", "1"], /got nothing, expected a store path/],
  ["a bad name", ["pin", "--name", "a//b", "--keep", "1", UNKNOWN], /expected a name such as host/],
  ["a long name", ["unpin", "--name", "a".repeat(101)], /expected a name such as host/],
  ["a name and a path", ["unpin", "--name", "a", UNKNOWN], new RegExp(UNKNOWN)],
];

for (const [what, words, sentence] of BAD) {
  Deno.test(`larder pin --name: ${what} gets a sentence, and nothing is sent`, async () => {
    const server = "http://127.0.0.1:9";
    const { status, out, err } = await runLarder([...words, "--server", server]);
    assert.deepEqual([status, out], [2, ""]);
    assert.match(err, sentence);
    assert.equal(err.split("\n").length, 2, "one line");
  });
}
