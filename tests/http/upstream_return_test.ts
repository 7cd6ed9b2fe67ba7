import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const objects = Array.from({ length: 6 }, (_, seed) => makeStoreObject({ name: "thing", seed }));
const [PATH = "", ...OTHERS] = objects.map(({ storePathHash }) => `/${storePathHash}.narinfo`);
const LOG_PATH = `/log/${"0".repeat(32)}-thing.drv`;
const stored = { objects, stored: true, documents: { [LOG_PATH]: "built\n" } } as const;

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
