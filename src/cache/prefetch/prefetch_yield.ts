/** NARs that larder prefetches before the first NAR request. */
export const INITIAL_NARS = 50;

/** NARs that larder prefetches for each NAR request. */
export const NARS_PER_REQUEST = 4;

/** The last outcomes decide whether prefetching is worth it. */
export const OUTCOMES_MAX = 200;

/** Fewer outcomes decide nothing. */
export const OUTCOMES_MIN = 20;

/** While most are wasted, larder still tries one in this many. */
export const TRIAL_EVERY = 20;

/** The recent use of prefetched NARs. */
export interface PrefetchYield {
  /** NARs that may be prefetched before the next NAR request. */
  readonly credit: number;
  /** True for wasted; the newest last. */
  readonly outcomes: readonly boolean[];
  /** NARs skipped since the last trial. */
  readonly skipped: number;
}

export type YieldEvent =
  /** A NAR is prefetched. */
  | "fetched"
  /** Skipped, because most are wasted. */
  | "skipped"
  /** A client requested a prefetched NAR, or one that waits for its prefetch. */
  | "used"
  | "wanted"
  /** No client requested the NAR in time, or no upstream had it. */
  | "wasted"
  | "failed";

export const INITIAL_YIELD: PrefetchYield = { credit: INITIAL_NARS, outcomes: [], skipped: 0 };

/** The only place where the yield changes. */
export function nextYield(now: PrefetchYield, event: YieldEvent): PrefetchYield {
  switch (event) {
    case "fetched":
      return { ...now, credit: Math.max(0, now.credit - 1), skipped: 0 };
    case "skipped":
      return { ...now, skipped: now.skipped + 1 };
    case "wanted":
      return { ...now, credit: creditOf(now, NARS_PER_REQUEST) };
    case "used":
      return { ...judged(now, false), credit: creditOf(now, NARS_PER_REQUEST) };
    case "wasted":
    case "failed":
      return judged(now, true);
  }
}

/** "wait": until the next NAR request. "skip": this NAR is not worth a request. */
export function decide({ credit, outcomes, skipped }: PrefetchYield): "fetch" | "wait" | "skip" {
  if (credit === 0) return "wait";
  const wasted = outcomes.filter((isWasted) => isWasted).length;
  const isMostlyWasted = outcomes.length >= OUTCOMES_MIN && wasted > outcomes.length / 2;
  return isMostlyWasted && skipped < TRIAL_EVERY - 1 ? "skip" : "fetch";
}

function judged(now: PrefetchYield, isWasted: boolean): PrefetchYield {
  return { ...now, outcomes: [...now.outcomes, isWasted].slice(-OUTCOMES_MAX) };
}

function creditOf({ credit }: PrefetchYield, more: number): number {
  return Math.min(INITIAL_NARS, credit + more);
}
