import assert from "node:assert/strict";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "hello-1.0", size: 1_000 });

Deno.test("wrong key: under the right name, log, verdict, problem and explanation say so", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const [name = ""] = upstream.publicKey.split(":");
  const trustedKeys = [generateSecretKey(name).publicKey];
  await using cache = await TestCache.open({ upstreams: [upstream], trustedKeys });
  await cache.get(`/${object.storePathHash}.narinfo`);
  const advice =
    `compare --cache-upstream-public-key with the key ${name} that the upstream publishes: they differ`;
  const reason = `the signature of key ${name} does not match the key given under that name`;

  const stats = await (await cache.get("/stats")).json();
  const told = await (await cache.get(`/explain?path=${object.storePathHash}`)).json();
  const page = await (await cache.get("/", { accept: "text/html" })).text();

  const [warning, ...others] = cache.logged("warn");
  assert.deepEqual([warning?.["hint"], others], [advice, []]);
  assert.ok(!("wrongKey" in (warning ?? {})));
  assert.equal(JSON.stringify(warning).split(reason).length, 2, "the reason stands there once");
  assert.deepEqual(stats.verdict.faults.map(({ hint }: { hint: string }) => hint), [advice]);
  assert.equal(stats.problems[0].facts.hint, advice);
  assert.ok(told.reasons.join(" ").includes(`no trusted key signs it: ${advice}.`), told.reasons);
  assert.ok(page.includes(advice));
  assert.ok(!page.includes("give its public key"));
});
