import type { Workplace } from "../workplace.ts";
import { type LargeCache, makeLargeCache } from "./large_cache.ts";
import { EVICTED, type Latency, measureServed, type ServedFigures } from "./served.ts";
import { type EvictionFigures, type KeepingFigures, StockedCache } from "./stocked_cache.ts";

/** More rounds would evict more than the small cache has. */
const ROUNDS = 3;

const SMALL = 10_000;
const LARGE = 1_000_000;

/** The coldest files and a reserve: files touched meanwhile are replaced by the next ones. */
const LARGE_FILES = EVICTED + 20_000;

/** The name for `--only`. */
export const EVICTION_NAME = "eviction";

type Figures = KeepingFigures & EvictionFigures;

/** Rows of the table, in order. */
const ROWS: Readonly<Record<keyof Figures, string>> = {
  useUs: "use of any path, 10,000 written, µs each",
  usesStopMs: "… longest stop, ms",
  pinMs: "pin of a closure of 10,000 paths, ms until it is protected",
  pinStopMs: "… longest stop, ms",
  unpinMs: "unpin of one of 1,000 pins of 1,000 paths each, ms until the rest is found",
  unpinStopMs: "… longest stop, ms",
  consideredUs: "entry considered beside these pins, µs",
  evictedPerSecond: "entries evicted beside these pins, with their files, a second",
  evictionStopMs: "… longest stop, ms",
};

/** The most that a row may cost with a million entries, as a multiple of ten thousand. */
const GROWTH_MAX: Partial<Readonly<Record<keyof Figures, number>>> = {
  useUs: 2,
  pinMs: 2,
  unpinMs: 2,
  consideredUs: 2,
};

interface Pair {
  readonly small: Figures;
  readonly large: Figures;
}

/**
 * Measures eviction with ten thousand entries and with a million, and then hits during the eviction
 * of a hundred thousand. Takes two to three minutes, mostly for writing the million. Returns
 * Markdown.
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
  return `${partsTable(pairs)}\n${servedTable(served)}`;
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

/** The best round of each, with the least interference. */
function partsTable(pairs: readonly Pair[]): string {
  const rows = (Object.keys(ROWS) as (keyof Figures)[]).map((key) => {
    const [small, large] = [pairs.map((pair) => pair.small[key]), pairs.map((p) => p.large[key])];
    const isRate = key === "evictedPerSecond";
    const best = (values: readonly number[]) => isRate ? Math.max(...values) : Math.min(...values);
    const [few, many] = [best(small), best(large)];
    const growth = isRate ? few / many : many / few;
    const digits = isRate ? 0 : 1;
    return [
      ROWS[key],
      few.toFixed(digits),
      many.toFixed(digits),
      growth.toFixed(1),
      ...verdict(growth, GROWTH_MAX[key]),
    ];
  });
  return table([
    ["eviction", "10,000 entries", "1,000,000 entries", "growth", "target", ""],
    ...rows,
  ]);
}

function verdict(growth: number, growthMax: number | undefined): readonly string[] {
  if (growthMax === undefined) return ["–", ""];
  return [`≤ ${growthMax}`, growth <= growthMax ? "reached" : "MISSED"];
}

function servedTable(
  { before, scrapes, during, evictedCount, evictionSeconds }: ServedFigures,
): string {
  const rate = Math.round(evictedCount / evictionSeconds).toLocaleString("en");
  const row = (name: string, { medianMs, p99Ms, longestMs }: Latency) => [
    name,
    ...[medianMs, p99Ms, longestMs].map((ms) => `${ms.toFixed(2)} ms`),
  ];
  return table([
    ["narinfo hits, 500 a second, a million entries", "median", "p99", "longest"],
    row("nothing else happens", before),
    row("scrapes of /metrics, nothing else happens", scrapes),
    row(`${evictedCount.toLocaleString("en")} entries are evicted, ${rate} a second`, during),
  ]);
}

function table([head = [], ...rows]: readonly (readonly string[])[]): string {
  return [head, head.map((_, at) => at === 0 ? "---" : "---:"), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`).join("\n") + "\n";
}
