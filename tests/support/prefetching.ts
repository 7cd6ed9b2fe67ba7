import type { FakeUpstream } from "./fake_upstream.ts";
import { scrape } from "./scrape.ts";
import { makeStoreObject, type StoreObject } from "./store_object.ts";
import { TestCache, type TestCacheOptions } from "./test_cache.ts";

/** The default of `--cache-prefetch-nar-max-size`. */
const NAR_BYTES_MAX = 1 << 20;

/** From half of it on, an upstream on a busy machine would seem to struggle. */
const TIMEOUT_MS = 20_000;

/** A cache that prefetches. */
export function prefetchingCache(options: TestCacheOptions): Promise<TestCache> {
  return TestCache.open({
    prefetch: { narBytesMax: NAR_BYTES_MAX },
    timeoutMs: TIMEOUT_MS,
    ...options,
  });
}

/** A top that refers to `count` other objects, which refer to nothing. The top comes last. */
export function fan(count: number, seed = 0): readonly StoreObject[] {
  const leaves = Array.from(
    { length: count },
    (_, at) => makeStoreObject({ name: `leaf-${at}`, seed }),
  );
  return [...leaves, makeStoreObject({ name: "top", references: leaves, seed })];
}

/** The counts of prefetched files by result, without the zeros. */
export async function prefetched(cache: TestCache): Promise<Readonly<Record<string, number>>> {
  return (await scrape(cache)).nonZero("larder_prefetch_total");
}

export function of(kind: "narinfo" | "nar", result: string): string {
  return `{kind="${kind}",result="${result}"}`;
}

/** How many requests for NARs the upstream got. */
export function narRequests(upstream: FakeUpstream): number {
  return upstream.count(/^\/nar\//);
}

/** Gets a narinfo and then its NAR; resolves to the X-Cache of both. */
export async function pull(
  cache: TestCache,
  { storePathHash }: StoreObject,
): Promise<readonly (string | null)[]> {
  const narinfo = await cache.get(`/${storePathHash}.narinfo`);
  const nar = await cache.get(`/${/^URL: (.*)$/m.exec(await narinfo.text())?.[1]}`);
  await nar.bytes();
  return [narinfo.headers.get("x-cache"), nar.headers.get("x-cache")];
}

export async function xCacheOf(answer: Promise<Response>): Promise<string | null> {
  const { headers, body } = await answer;
  await body?.cancel();
  return headers.get("x-cache");
}
