/** The paths of one kind, and the requests for them. */
export interface RequestFigures {
  readonly paths: number;
  readonly perPath: number;
  /** The same for the fetches and the requests that count. */
  readonly perCounted: number;
  /** Fetches that count, of a path whose fetch before counts, too. */
  readonly again: number;
  /** Requests that do not count. */
  readonly exempt: number;
}

/** Neighbours that work at a moment. */
export interface Health {
  /** Locks, database and store: larders can know of each other. */
  readonly isShared: boolean;
  /** Database and store: larders can read what they have kept. */
  readonly isReadable: boolean;
}

/**
 * Eviction may take a path that is so cold. The next request for it is another fetch, which
 * `requestProblems` holds against the number of evicted entries.
 */
export const EVICTED_AFTER_MS = 10_000;

interface Noted {
  requests: number;
  again: number;
  /** Fetches that began while all worked, and their requests. */
  fetches: number;
  counted: number;
  /** Whether the last fetch is one of these. */
  counts: boolean;
  lastMs: number;
}

/** Counts the requests to an upstream. */
export class UpstreamRequests {
  readonly #noted = new Map<string, Noted>();

  note(path: string, { isShared, isReadable }: Health, nowMs = performance.now()): void {
    const noted = this.#noted.get(path) ??
      { requests: 0, again: 0, fetches: 0, counted: 0, counts: false, lastMs: -Infinity };
    this.#noted.set(path, noted);
    noted.requests++;
    const isNew = nowMs - noted.lastMs > EVICTED_AFTER_MS;
    noted.lastMs = nowMs;
    if (isNew && noted.counts && isShared) noted.again++;
    if (isNew) noted.counts = isShared;
    if (!noted.counts || !(isNew || isReadable)) return;
    if (isNew) noted.fetches++;
    noted.counted++;
  }

  figures(kind: RegExp): RequestFigures {
    const noted = [...this.#noted].filter(([path]) => kind.test(path)).map(([, one]) => one);
    const sum = (key: Exclude<keyof Noted, "counts" | "lastMs">) =>
      noted.reduce((total, one) => total + one[key], 0);
    return {
      paths: noted.length,
      perPath: sum("requests") / Math.max(1, noted.length),
      perCounted: sum("counted") / Math.max(1, sum("fetches")),
      again: sum("again"),
      exempt: sum("requests") - sum("counted"),
    };
  }
}

/** Upstream requests for each fetch of a path. */
const REQUESTS_PER_FETCH_MAX = 1.05;

/** Entries that larders removed from their storage. */
export interface Evictions {
  readonly entries: number;
  /** At most so many more: a killed larder had not told them yet. */
  readonly untold: number;
}

/** Problems of the requests for one kind of paths, in sentences. */
export function requestProblems(
  kind: string,
  { perCounted, again }: Pick<RequestFigures, "perCounted" | "again">,
  { entries, untold }: Evictions,
): readonly string[] {
  const problems: string[] = [];
  if (perCounted > REQUESTS_PER_FETCH_MAX) {
    problems.push(`${kind}: ${perCounted} upstream requests for each fetch`);
  }
  if (again > entries + untold) {
    problems.push(`${kind}: fetched again ${again} times, but evicted ${entries} times`);
  }
  return problems;
}
