import type { EvictionFigures, KeepingFigures } from "./stocked_cache.ts";
import type { Spent } from "./turns.ts";

export type Figures = KeepingFigures & EvictionFigures;

/** The figures of one round, with few entries and with many. */
export interface Pair {
  readonly small: Figures;
  readonly large: Figures;
}

interface Row {
  readonly name: string;
  readonly unit: keyof typeof VALUES;
  /** The most that it may cost with many entries, as a multiple of its cost with few. */
  readonly growthMax?: number;
  /** The most that it may take with many entries. */
  readonly msMax?: number;
}

const VALUES = {
  "µs": ({ ms }: Spent) => (ms * 1_000).toFixed(1),
  "ms": ({ ms }: Spent) => ms.toFixed(1),
  "a second": ({ ms }: Spent) => (1_000 / ms).toFixed(0),
} as const;

const USES = "use of any path, 10,000 written";
const PIN = "pin of a closure of 10,000 paths, until it is protected";
const UNPIN = "unpin of one of 1,000 pins of 1,000 paths each, until the rest is found";
const EVICTED = "entries evicted beside these pins, with their files";

/** The longest stop of the thread that answers. */
const STOP = { unit: "ms", msMax: 5 } as const;

const ROWS: Readonly<Record<keyof Figures, Row>> = {
  use: { name: `${USES}: each`, unit: "µs", growthMax: 2 },
  usesStop: { name: `${USES}: longest stop`, ...STOP },
  pin: { name: PIN, unit: "ms", growthMax: 2 },
  pinStop: { name: `${PIN}: longest stop`, ...STOP },
  unpin: { name: UNPIN, unit: "ms", growthMax: 2 },
  unpinStop: { name: `${UNPIN}: longest stop`, ...STOP },
  considered: { name: "entry considered beside these pins", unit: "µs", growthMax: 2 },
  evicted: { name: EVICTED, unit: "a second" },
  evictionStop: { name: `${EVICTED}: longest stop`, ...STOP },
};

/**
 * A Markdown table of the best round of each figure, which has the least interference. Below it
 * stands each missed target, with where the time goes.
 */
export function partsTable(
  pairs: readonly Pair[],
  counts: { readonly small: number; readonly large: number },
): string {
  const [few, many] = [counts.small, counts.large].map((count) => count.toLocaleString("en"));
  const missed: string[] = [];
  const rows = (Object.keys(ROWS) as (keyof Figures)[]).map((key) => {
    const { name, unit, growthMax, msMax } = ROWS[key];
    const [small, large] = [best(pairs, key, "small"), best(pairs, key, "large")];
    const growth = large.ms / small.ms;
    const isReached = growth <= (growthMax ?? Infinity) && large.ms <= (msMax ?? Infinity);
    if (!isReached) {
      missed.push(
        `* Missed: ${name}. With ${few} entries ${shares(small)}. With ${many} ${shares(large)}.`,
      );
    }
    const target = growthMax !== undefined
      ? `growth ≤ ${growthMax}`
      : msMax !== undefined
      ? `≤ ${msMax} ms`
      : "–";
    const verdict = target === "–" ? "" : isReached ? "reached" : "MISSED";
    const values = [small, large].map((spent) => `${VALUES[unit](spent)} ${unit}`);
    return [name, ...values, growth.toFixed(1), target, verdict];
  });
  const lines = table([
    ["eviction", `${few} entries`, `${many} entries`, "growth", "target", ""],
    ...rows,
  ]);
  return missed.length === 0 ? lines : `${lines}\n${missed.join("\n")}\n`;
}

/** A Markdown table, whose first row is its head. */
export function table([head = [], ...rows]: readonly (readonly string[])[]): string {
  return [head, head.map((_, at) => at === 0 ? "---" : "---:"), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`).join("\n") + "\n";
}

function best(pairs: readonly Pair[], key: keyof Figures, size: keyof Pair): Spent {
  return pairs.map((pair) => pair[size][key]).reduce((one, two) => two.ms < one.ms ? two : one);
}

/** Such as "on a core 80 %, blocked 20 %; 3.1 pages of 4 KiB read, 2.0 written". */
function shares({ ms, onCoreMs, readBytes, writtenBytes }: Spent): string {
  const onCore = Math.min(100, Math.round(100 * onCoreMs / ms));
  const [read, written] = [readBytes, writtenBytes].map((bytes) => (bytes / 4_096).toFixed(1));
  return `on a core ${onCore} %, blocked ${100 - onCore} %; ${read} pages of 4 KiB read, ` +
    `${written} written`;
}
