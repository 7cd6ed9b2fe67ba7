import assert from "node:assert/strict";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { runLarder } from "../../support/run_larder.ts";
import { makeStoreObject, type StoreObject } from "../../support/store_object.ts";
import { TestCache } from "../../support/test_cache.ts";

const object = makeStoreObject({ name: "hello-1.0" });
const objects = [object, ...["tool-1.0", "tool-2.0"].map((name) => makeStoreObject({ name }))];

Deno.test("larder explain: the reasons for people, and all facts for programs", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  await cache.narinfo(object.storePathHash);
  const words = ["explain", object.storePath, "--server", server.url];

  const people = await runLarder(words);
  assert.deepEqual([people.status, people.err], [0, ""]);
  assert.match(people.out, new RegExp(`^${object.baseName}\n  The narinfo is stored, and its NAR`));
  assert.match(people.out, new RegExp(`\n  ${upstream.url} had its narinfo at `));

  const programs = await runLarder([...words, "--json"]);
  const told = JSON.parse(programs.out);
  assert.deepEqual([told.hash, told.verdict], [object.storePathHash, "nar_not_stored"]);
  assert.equal((await runLarder(["explain"])).status, 2);
});

Deno.test("larder explain: a name stands for the one stored path that has it", async () => {
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  for (const { storePathHash } of objects) await cache.narinfo(storePathHash);
  const explained = (...names: string[]) =>
    runLarder(["explain", ...names, "--server", server.url]);

  for (const name of ["hello", "hello-1.0", "ell"]) {
    const { status, out } = await explained(name);
    assert.deepEqual([status, out.split("\n")[0]], [0, object.baseName], name);
  }
  const [, first, second] = objects as [StoreObject, StoreObject, StoreObject];
  const several = await explained("tool", "absent", "hello");
  assert.equal(several.status, 1);
  assert.ok(several.out.startsWith(`${object.baseName}\n`), several.out);
  assert.equal(
    several.err,
    `larder: 2 of 3 not explained:
  tool: 2 stored paths have such a name; give one of
    ${second.baseName}
    ${first.baseName}
  absent: no stored path has such a name; give the store path, or its hash
`,
  );
  assert.equal((await explained("/etc/passwd")).status, 2);
});
