import assert from "node:assert/strict";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { runLarder } from "../../support/run_larder.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { TestCache } from "../../support/test_cache.ts";

const object = makeStoreObject({ name: "hello-1.0" });

Deno.test("larder explain: the reasons for people, and all facts for programs", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  await cache.narinfo(object.storePathHash);
  const words = ["explain", object.storePath, "--server", server.url];

  const people = await runLarder(words);
  assert.deepEqual([people.status, people.err], [0, ""]);
  assert.match(people.out, new RegExp(`^${object.baseName}\n  The narinfo is stored, and its NAR`));
  assert.match(people.out, new RegExp(`\n  ${upstream.url} had it at `));

  const programs = await runLarder([...words, "--json"]);
  const told = JSON.parse(programs.out);
  assert.deepEqual([told.hash, told.verdict], [object.storePathHash, "nar_not_stored"]);
  assert.equal((await runLarder(["explain"])).status, 2);
});
