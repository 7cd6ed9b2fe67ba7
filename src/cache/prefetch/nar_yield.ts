/** NARs fetched ahead before a client has asked for any. */
export const FIRST_NARS = 50;

/** Each NAR that a client asks for lets so many be fetched ahead. */
export const NARS_PER_REQUEST = 4;

/** The last verdicts decide whether fetching ahead is worth it. */
export const VERDICTS_MAX = 200;

/** Fewer verdicts say nothing. */
export const VERDICTS_MIN = 20;

/** While most are wasted, one in so many is fetched, to find out when that changes. */
export const TRIAL_EVERY = 20;

/** How useful it has been of late to fetch NARs ahead. */
export interface NarYield {
  /** NARs that may be fetched before a client has to ask for one. */
  readonly credit: number;
  /** True for wasted; the newest last. */
  readonly verdicts: readonly boolean[];
  /** NARs passed over since the last trial. */
  readonly passedOver: number;
}

export type YieldEvent =
  /** A NAR is fetched ahead. */
  | "fetched"
  /** It could have been, but most are wasted. */
  | "passed over"
  /** A client asked for one that was fetched ahead, or that has yet to be. */
  | "used"
  | "wanted"
  /** Nobody asked for one in time, or it did not come: an upstream without it is asked in vain. */
  | "wasted"
  | "failed";

export const FIRST_YIELD: NarYield = { credit: FIRST_NARS, verdicts: [], passedOver: 0 };

/** The only place where the yield changes. */
export function nextYield(now: NarYield, event: YieldEvent): NarYield {
  switch (event) {
    case "fetched":
      return { ...now, credit: Math.max(0, now.credit - 1), passedOver: 0 };
    case "passed over":
      return { ...now, passedOver: now.passedOver + 1 };
    case "wanted":
      return { ...now, credit: creditOf(now, NARS_PER_REQUEST) };
    case "used":
      return { ...judged(now, false), credit: creditOf(now, NARS_PER_REQUEST) };
    case "wasted":
    case "failed":
      return judged(now, true);
  }
}

/** "wait": until a client asks for a NAR. "pass over": this one is not worth it. */
export function decide({ credit, verdicts, passedOver }: NarYield): "fetch" | "wait" | "pass over" {
  if (credit === 0) return "wait";
  const wasted = verdicts.filter((isWasted) => isWasted).length;
  const isMostlyWasted = verdicts.length >= VERDICTS_MIN && wasted > verdicts.length / 2;
  return isMostlyWasted && passedOver < TRIAL_EVERY - 1 ? "pass over" : "fetch";
}

function judged(now: NarYield, isWasted: boolean): NarYield {
  return { ...now, verdicts: [...now.verdicts, isWasted].slice(-VERDICTS_MAX) };
}

function creditOf({ credit }: NarYield, more: number): number {
  return Math.min(FIRST_NARS, credit + more);
}
