/** NARs that narinfos alone may cost an upstream. */
const NARS_MAX = 60;

/** The requests that a client cost the upstream with narinfos alone. */
export interface NarsAlone {
  readonly narinfos: number;
  /** The path of each request for a NAR. */
  readonly narPaths: readonly string[];
  /** NARs that larder did not get ahead, and did not want ahead, by its own count. */
  readonly failed: number;
  readonly skipped: number;
}

/** A line with the target. A missed one says where the requests come from. */
export function narsAloneLine({ narinfos, narPaths, failed, skipped }: NarsAlone): string {
  const { length } = narPaths;
  const repeated = length - new Set(narPaths).size;
  const verdict = length <= NARS_MAX
    ? "reached"
    : `MISSED; ${repeated} of them repeat one, ${failed} failed, larder skipped ${skipped} NARs`;
  return `${narinfos} narinfos and no NAR cost the upstream ${length} NARs ` +
    `(≤ ${NARS_MAX}: ${verdict}).`;
}
