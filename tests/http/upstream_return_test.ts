import assert from "node:assert/strict";
import { BlackHole } from "../support/black_hole.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";
import { assertInTime, timedTest } from "../support/timed_test.ts";

const objects = Array.from({ length: 6 }, (_, seed) => makeStoreObject({ name: "thing", seed }));
const [PATH = "", ...OTHERS] = objects.map(({ storePathHash }) => `/${storePathHash}.narinfo`);
const LOG_PATH = `/log/${"0".repeat(32)}-thing.drv`;
const stored = { objects, stored: true, documents: { [LOG_PATH]: "built\n" } } as const;

/** With every upstream off a request is 404 within this. */
const SOON_MS = 1_000;

Deno.test("return: the first request after a refusing upstream's return is served", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream] });
  for (const path of [PATH, LOG_PATH]) {
    await takeDown([upstream], cache);
    assert.equal((await cache.get(path)).status, 404);
    await upstream.start();
    assert.equal((await cache.get(path)).status, 200, path);
  }
});

Deno.test("return: of two that were off, the one that has the path is waited for", async () => {
  await using empty = await fakeUpstream({ stored: true });
  await using full = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [empty, full] });
  await takeDown([empty, full], cache);
  await empty.start();
  await full.start();
  assert.equal((await cache.get(PATH)).status, 200);
});

timedTest("return: a NAR whose only source was silent is served after its return", async () => {
  await using empty = await fakeUpstream({ stored: true });
  await using upstream = await fakeUpstream(stored);
  const timeoutMs = 200;
  await using cache = await TestCache.open({ upstreams: [empty, upstream], timeoutMs });
  const paths: string[] = [];
  for (const { storePathHash } of objects) paths.push(await cache.narPath(storePathHash));
  upstream.onRequest = () => new Promise<undefined>(() => {});
  for (const path of paths.slice(0, 3)) await cache.get(path);
  await eventually("it is down", () => isDown(upstream, cache));
  // The probe that follows this one is not due for four seconds.
  await upstream.requested("/nix-cache-info", upstream.count("/nix-cache-info") + 2);
  upstream.onRequest = undefined;
  const startedAtMs = performance.now();
  await eventually("the NAR is served", async () => {
    const answer = await cache.get(paths[4] ?? "");
    await answer.body?.cancel();
    return answer.status === 200;
  });
  assertInTime(performance.now() - startedAtMs, 2_000);
});

timedTest("return: one that answers no older probe is used within two seconds", async () => {
  await using upstream = await fakeUpstream(stored);
  await using cache = await TestCache.open({ upstreams: [upstream], timeoutMs: 4_000 });
  cache.probeUpstreams();
  upstream.onRequest = () => new Promise<undefined>(() => {});
  await Promise.all(OTHERS.map((path) => cache.get(path)));
  await eventually("it is down", () => isDown(upstream, cache));
  // The upstream does not answer the probe that is in flight now.
  await upstream.requested("/nix-cache-info", upstream.count("/nix-cache-info") + 1);
  upstream.onRequest = undefined;
  const startedAtMs = performance.now();
  await eventually("it is used", async () => (await cache.get(PATH)).status === 200);
  assertInTime(performance.now() - startedAtMs, 2_000);
});

timedTest("return: requests that find every upstream vanished share their probes", async () => {
  using hole = await BlackHole.open();
  await using upstream = await fakeUpstream(stored);
  const timeoutMs = 1_500;
  await using cache = await TestCache.open({ upstreams: [hole.url, upstream], timeoutMs });
  cache.probeUpstreams();
  await upstream.vanish();
  for (const path of OTHERS) await cache.get(path);
  await eventually("both are down", () => cache.log.filter(saysDown).length === 2);
  const startedAtMs = performance.now();
  await Promise.all(Array.from({ length: 50 }, async () => {
    assert.equal((await cache.get(PATH)).status, 404);
    assertInTime(performance.now() - startedAtMs, SOON_MS);
  }));
});

/** Switches them off, and asks until that is known. */
async function takeDown(upstreams: readonly FakeUpstream[], cache: TestCache): Promise<void> {
  for (const upstream of upstreams) await upstream.stop();
  await eventually("they are down", async () => {
    await Promise.all(OTHERS.map((path) => cache.get(path)));
    return upstreams.every((upstream) => isDown(upstream, cache));
  });
}

function isDown({ url }: FakeUpstream, cache: TestCache): boolean {
  const last = cache.log.findLast((line) =>
    line["upstream"] === url && (saysDown(line) || line.msg === "upstream is up again")
  );
  return last !== undefined && saysDown(last);
}

function saysDown({ msg }: { readonly msg: string }): boolean {
  return msg === "upstream is down";
}
