import type { HistoryReader } from "../../history/history.ts";
import { type Figure, FIGURES, TIERS } from "../../metadata/history_keeper.ts";
import type {
  HistorySlotStats,
  HistoryStats,
  LifetimeRequestStats,
  LifetimeStats,
} from "./stats.ts";

type Range = HistoryStats["range"];

const DEFAULT_RANGE: Range = "day";

/** A younger history has a few slots of a day at most: its last hour says more. */
const YOUNG_MS = 2 * 3_600_000;

const SHOWN = Object.keys(FIGURES).filter((figure) => figure !== "since_ms") as Figure[];

/** One range of the past; an unknown name is the default one. */
export function historyStats(
  history: HistoryReader,
  name: string | undefined,
  defaultRange = DEFAULT_RANGE,
): HistoryStats {
  const range = isRange(name) ? name : defaultRange;
  const slots = history.slots(range).map(({ atMs, figures }) => ({
    at: new Date(atMs).toISOString(),
    figures: figures === undefined ? null : figuresOf(figures),
  }));
  return { range, step_seconds: TIERS[range].stepMs / 1_000, slots };
}

/** The default range for people, who see an almost empty chart as a broken one. */
export function rangeToShow({ since }: LifetimeStats, atMs: number): Range {
  return atMs - Date.parse(since) < YOUNG_MS ? "hour" : DEFAULT_RANGE;
}

function isRange(name: string | undefined): name is Range {
  return name !== undefined && name !== "lifetime" && Object.hasOwn(TIERS, name);
}

function figuresOf(figures: ReadonlyMap<Figure, number>) {
  const amounts = SHOWN.map((figure) => [figure, figures.get(figure) ?? 0]);
  return Object.fromEntries(amounts) as NonNullable<HistorySlotStats["figures"]>;
}

/** Figures of all members since the first start of this storage. */
export function lifetimeStats(history: HistoryReader, startedAtMs: number): LifetimeStats {
  const figures = history.lifetime();
  const of = (figure: Figure) => figures.get(figure) ?? 0;
  const counted = ["narinfo_hits", "narinfo_misses", "nar_hits", "nar_misses", "absent"] as const;
  return {
    since: new Date(figures.get("since_ms") ?? startedAtMs).toISOString(),
    requests: counted.reduce((sum, figure) => sum + of(figure), 0),
    served_bytes: of("served_bytes"),
    upstream_bytes: of("fetched_bytes"),
    saved_bytes: of("saved_bytes"),
    narinfo: ratioOf(of("narinfo_hits"), of("narinfo_misses")),
    nar: ratioOf(of("nar_hits"), of("nar_misses")),
  };
}

function ratioOf(hits: number, misses: number): LifetimeRequestStats {
  const requests = hits + misses;
  return { requests, hit_ratio: requests === 0 ? null : hits / requests };
}
