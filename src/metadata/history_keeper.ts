import { Buffer } from "node:buffer";

/** How amounts of one slot become one: two members and two minutes write into the same slot. */
type Merge = "sum" | "last" | "first";

/** Figures of the history, and how each adds up. Bytes are of NAR files and narinfos. */
export const FIGURES = {
  /** Hits and joined requests. */
  narinfo_hits: "sum",
  /** Misses and first requests for narinfos that larder prefetched. */
  narinfo_misses: "sum",
  nar_hits: "sum",
  nar_misses: "sum",
  /** Requests that a negative entry answered. */
  absent: "sum",
  served_bytes: "sum",
  fetched_bytes: "sum",
  saved_bytes: "sum",
  evicted_bytes: "sum",
  evicted_entries: "sum",
  /** Milliseconds of all downloads in flight: divided by a slot's length, their mean number. */
  in_flight_ms: "sum",
  stored_bytes: "last",
  since_ms: "first",
} as const satisfies Readonly<Record<string, Merge>>;

export type Figure = keyof typeof FIGURES;

/** A span that people look at, in slots of equal length. `lifetime` is one slot, for ever. */
export const TIERS = {
  hour: { stepMs: 60_000, slotsMax: 60 },
  day: { stepMs: 30 * 60_000, slotsMax: 48 },
  week: { stepMs: 3 * 3_600_000, slotsMax: 56 },
  month: { stepMs: 12 * 3_600_000, slotsMax: 62 },
  lifetime: { stepMs: Infinity, slotsMax: 1 },
} as const;

export type Tier = keyof typeof TIERS;

/** One figure of one slot. */
export interface HistoryRow {
  readonly tier: Tier;
  /** The slot's start; 0 for `lifetime`. */
  readonly atMs: number;
  readonly figure: Figure;
  /** A whole number. */
  readonly amount: number;
}

/** The slots of one tier that are too old. */
export interface ExpiredSlots {
  readonly tier: Tier;
  readonly beforeMs: number;
}

/** Keeps the figures of the cache, over restarts and for all members together. */
export interface HistoryKeeper {
  /** Merges rows into those that are there, and removes old slots. All or nothing. */
  recordHistory(
    rows: readonly HistoryRow[],
    expired: readonly ExpiredSlots[],
  ): Promise<void>;
  /** All rows, in no particular order: some three thousand at most. */
  history(): Promise<readonly HistoryRow[]>;
}

/** Two amounts of one figure in one slot, the older in front. */
export function mergedAmount(figure: Figure, older: number, newer: number): number {
  switch (FIGURES[figure]) {
    case "sum":
      return older + newer;
    case "last":
      return newer;
    case "first":
      return older;
  }
}

/** Pulls that the database keeps: with the longest rows, one MiB. */
export const PULLS_MAX = 200;

/** The most bytes of each text. */
export const PULL_BYTES_MAX = { summary: 1_500, paths: 3_700 } as const;

/** The most bytes of a client's name. */
const CLIENT_BYTES_MAX = 200;

/** A pull without its paths. */
export interface PullSummary {
  readonly id: string;
  readonly client: string;
  /** JSON of `history/pulls.ts`. */
  readonly summary: string;
}

export interface PullRow extends PullSummary {
  /** JSON of the slowest paths. */
  readonly paths: string;
}

/** Keeps the newest pulls of all members, over restarts. */
export interface PullKeeper {
  /** Adds pulls, the oldest first, and removes the oldest beyond `PULLS_MAX`. Known ids stay. */
  recordPulls(rows: readonly PullRow[]): Promise<void>;
  /** The newest first; of one client, if `client` is given. */
  pulls(countMax: number, client?: string): Promise<readonly PullSummary[]>;
  /** `undefined`: there is none, or it was long ago. */
  findPull(id: string): Promise<PullRow | undefined>;
}

/** A client as the database names it: a token's name may be long. */
export function boundedClient(client: string): string {
  if (Buffer.byteLength(client) <= CLIENT_BYTES_MAX) return client;
  return Buffer.from(client).subarray(0, CLIENT_BYTES_MAX).toString().replace(/\uFFFD+$/, "");
}
