/** The paths of one kind, and the requests for them. */
export interface RequestFigures {
  readonly paths: number;
  readonly perPath: number;
  /** The same for the fetches and the requests that count. */
  readonly perCounted: number;
}

/** Neighbours that work at a moment. */
export interface Health {
  /** Locks, database and store: larders can know of each other. */
  readonly isShared: boolean;
  /** Database and store: larders can read what they have kept. */
  readonly isReadable: boolean;
}

/** Eviction may take a path that is so cold. The next request for it is another fetch. */
export const EVICTED_AFTER_MS = 10_000;

interface Noted {
  requests: number;
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
      { requests: 0, fetches: 0, counted: 0, counts: false, lastMs: -Infinity };
    this.#noted.set(path, noted);
    noted.requests++;
    const isNew = nowMs - noted.lastMs > EVICTED_AFTER_MS;
    noted.lastMs = nowMs;
    if (isNew) noted.counts = isShared;
    if (!noted.counts || !(isNew || isReadable)) return;
    if (isNew) noted.fetches++;
    noted.counted++;
  }

  figures(kind: RegExp): RequestFigures {
    const noted = [...this.#noted].filter(([path]) => kind.test(path)).map(([, one]) => one);
    const sum = (key: "requests" | "fetches" | "counted") =>
      noted.reduce((total, one) => total + one[key], 0);
    return {
      paths: noted.length,
      perPath: sum("requests") / Math.max(1, noted.length),
      perCounted: sum("counted") / Math.max(1, sum("fetches")),
    };
  }
}
