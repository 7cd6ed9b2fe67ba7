import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const object = makeStoreObject({ name: "hello-1.0", size: 300_000 });

/** The text of a part of the page, in one line. */
async function partOf(cache: TestCache, id: string, query = ""): Promise<string> {
  const html = await (await cache.get(`/${query}`, { accept: "text/html" })).text();
  const part = new RegExp(`id="${id}"[^>]*>([^]*?)</(?:section|dl)>`).exec(html);
  return (part?.[1] ?? "").replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
}

Deno.test("page: is it working? … one line says so, or what to do", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await cache.narinfo(object.storePathHash);
  assert.match(await partOf(cache, "standing"), /All is well The upstream answers\. 0 B stored\./);

  await using alone = await TestCache.open({ upstreams: ["http://127.0.0.1:1"] });
  await alone.get(`/${object.storePathHash}.narinfo`);
  const broken = await partOf(alone, "standing");
  assert.match(
    broken,
    /Only stored paths are served The upstream is down\. What to do: check the network/,
  );

  await using half = await TestCache.open({ upstreams: [upstream, "http://127.0.0.1:1"] });
  await half.narinfo(object.storePathHash);
  assert.match(
    await partOf(half, "standing"),
    /Needs a look 1 upstream of 2 is down: 127\.0\.0\.1:1\. What to do: nothing at once/,
  );

  await using untrusting = await TestCache.open({ upstreams: [upstream], trustedKeys: [] });
  await untrusting.get(`/${object.storePathHash}.narinfo`);
  const untrusted = await partOf(untrusting, "standing");
  assert.match(untrusted, /No trusted key signs .* give its public key with --cache-upstream-/);
});

Deno.test("page: what did it save me? … the bytes since the first start", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const nowMs = () => Date.UTC(2026, 2, 17, 12);
  await using cache = await TestCache.open({ upstreams: [upstream], nowMs });
  const earlier = { tier: "lifetime", atMs: 0 } as const;
  await cache.metadata.recordHistory([
    { ...earlier, figure: "saved_bytes", amount: 312 * 2 ** 30 },
    { ...earlier, figure: "since_ms", amount: Date.UTC(2026, 0, 2) },
  ], []);
  await cache.startHistory();
  const path = await cache.narPath(object.storePathHash);
  await (await cache.get(path)).bytes();
  await cache.downloadsOver();
  for (let count = 0; count < 4; count++) await (await cache.get(path)).bytes();
  assert.match(await partOf(cache, "figures"), /Saved in all 312\.0 GiB since 2 January 2026/);
  const charts = await partOf(cache, "charts", "?range=hour");
  assert.match(charts, /Saved 1\.1 MiB that no upstream had to send/);
  assert.match(charts, /12:00: served 1\.4 MiB, fetched 293\.\d KiB/);
});
