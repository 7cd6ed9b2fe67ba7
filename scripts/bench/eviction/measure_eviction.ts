import type { Workplace } from "../workplace.ts";
import { type LargeCache, makeLargeCache } from "./large_cache.ts";
import { type Pair, partsTable } from "./parts_table.ts";
import { EVICTED, measureServed } from "./served.ts";
import { servedTable } from "./served_table.ts";
import { type KeepingFigures, StockedCache } from "./stocked_cache.ts";

/** More rounds would evict more than the small cache has. */
const ROUNDS = 3;

const SMALL = 10_000;
const LARGE = 1_000_000;

/** The coldest files and a reserve: files touched meanwhile are replaced by the next ones. */
const LARGE_FILES = EVICTED + 20_000;

/** The name for `--only`. */
export const EVICTION_NAME = "eviction";

/**
 * Measures eviction with ten thousand entries and with a million, and then hits during the eviction
 * of thirty thousand. Takes one to two minutes, mostly for writing the million. Returns Markdown.
 */
export async function measureEviction(
  workplace: Workplace,
  executable: string | undefined,
): Promise<string> {
  const small = { folder: workplace.makeFolder("small"), entries: SMALL, files: SMALL };
  const large = { folder: workplace.makeFolder("large"), entries: LARGE, files: LARGE_FILES };
  await makeLargeCache(small);
  await makeLargeCache(large);
  await workplace.run({ command: "sync", args: [] });
  const pairs = await measureParts(small, large);
  const served = await measureServed(workplace, large, executable);
  return `${partsTable(pairs, { small: SMALL, large: LARGE })}\n${servedTable(served)}`;
}

/** Both caches in every round, so that other work of the machine affects both. */
async function measureParts(small: LargeCache, large: LargeCache): Promise<readonly Pair[]> {
  await using smallCache = await StockedCache.open(small);
  await using largeCache = await StockedCache.open(large);
  const keeping: { small: KeepingFigures; large: KeepingFigures }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    keeping.push({ small: await smallCache.keep(), large: await largeCache.keep() });
  }
  const pairs: Pair[] = [];
  for (const kept of keeping) {
    const [evictedSmall, evictedLarge] = [await smallCache.evict(), await largeCache.evict()];
    pairs.push({
      small: { ...kept.small, ...evictedSmall },
      large: { ...kept.large, ...evictedLarge },
    });
  }
  return pairs;
}
