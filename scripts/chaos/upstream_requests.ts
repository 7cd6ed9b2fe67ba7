/** The paths of one kind, and the requests for them. */
export interface RequestFigures {
  readonly paths: number;
  readonly perPath: number;
  /** Requests that count for each fetch that counts. */
  readonly perFetch: number;
  /** Requests that no eviction explains, beyond the first of a fetch. */
  readonly doubled: number;
  /** Fetches of paths that larders had evicted. */
  readonly again: number;
  /** Requests that do not count. */
  readonly exempt: number;
}

/** Neighbours that work at a moment. */
export interface Health {
  /** Locks, database and store: larders can know of each other. */
  readonly isShared: boolean;
  /** Database and store: larders can read their stored files. */
  readonly isReadable: boolean;
}

export interface NotedRequest extends Health {
  readonly path: string;
  /** Whether larders have it, by their database. */
  readonly isKept: boolean;
}

/**
 * Requests for a path belong to one fetch unless they are this far apart. A fetch takes a second or
 * two, and a paused larder eight more. Eviction takes nothing that is so new.
 */
export const FETCH_MS = 10_000;

interface Noted {
  requests: number;
  fetches: number;
  doubled: number;
  again: number;
  exempt: number;
  /** Whether the last fetch began while all worked. */
  counts: boolean;
  lastMs: number;
}

/** Counts the requests to an upstream. */
export class UpstreamRequests {
  readonly #noted = new Map<string, Noted>();

  /** True if a request now may be for an evicted path. */
  isLate(path: string, nowMs = performance.now()): boolean {
    const noted = this.#noted.get(path);
    return noted !== undefined && nowMs - noted.lastMs > FETCH_MS;
  }

  note({ path, isShared, isReadable, isKept }: NotedRequest, nowMs = performance.now()): void {
    const noted = this.#noted.get(path) ??
      {
        ...{ requests: 0, fetches: 0, doubled: 0, again: 0, exempt: 0 },
        counts: false,
        lastMs: -Infinity,
      };
    this.#noted.set(path, noted);
    noted.requests++;
    const isNew = nowMs - noted.lastMs > FETCH_MS;
    noted.lastMs = nowMs;
    const { counts } = noted;
    if (isNew) noted.counts = isShared;
    if (!noted.counts || !(isNew || isReadable)) noted.exempt++;
    // A path whose last fetch did not count may not have been kept.
    else if (!counts) noted.fetches++;
    else if (!isNew || isKept) noted.doubled++;
    else {
      noted.fetches++;
      noted.again++;
    }
  }

  figures(kind: RegExp): RequestFigures {
    const noted = [...this.#noted].filter(([path]) => kind.test(path)).map(([, one]) => one);
    const sum = (key: Exclude<keyof Noted, "counts" | "lastMs">) =>
      noted.reduce((total, one) => total + one[key], 0);
    return {
      paths: noted.length,
      perPath: sum("requests") / Math.max(1, noted.length),
      perFetch: 1 + sum("doubled") / Math.max(1, sum("fetches")),
      doubled: sum("doubled"),
      again: sum("again"),
      exempt: sum("exempt"),
    };
  }
}
