/** The paths of one kind, and the requests for them. */
export interface RequestFigures {
  readonly paths: number;
  readonly perPath: number;
  /** Paths whose requests count, again for each fetch after one that does not count. */
  readonly counted: number;
  /** Requests that count, beyond one for each of these. */
  readonly further: number;
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

/** Requests for a path are two fetches if they are this far apart. */
export const FETCH_MS = 10_000;

interface Noted {
  requests: number;
  counted: number;
  further: number;
  exempt: number;
  /** Whether the last fetch began while all worked. */
  counts: boolean;
  lastMs: number;
}

/** Counts the requests to an upstream. */
export class UpstreamRequests {
  readonly #noted = new Map<string, Noted>();

  note(path: string, { isShared, isReadable }: Health, nowMs = performance.now()): void {
    const noted = this.#noted.get(path) ??
      { requests: 0, counted: 0, further: 0, exempt: 0, counts: false, lastMs: -Infinity };
    this.#noted.set(path, noted);
    noted.requests++;
    const isNew = nowMs - noted.lastMs > FETCH_MS;
    noted.lastMs = nowMs;
    const { counts } = noted;
    if (isNew) noted.counts = isShared;
    if (!noted.counts || !(isNew || isReadable)) noted.exempt++;
    else if (counts) noted.further++;
    else noted.counted++;
  }

  figures(kind: RegExp): RequestFigures {
    const noted = [...this.#noted].filter(([path]) => kind.test(path)).map(([, one]) => one);
    const sum = (key: "requests" | "counted" | "further" | "exempt") =>
      noted.reduce((total, one) => total + one[key], 0);
    return {
      paths: noted.length,
      perPath: sum("requests") / Math.max(1, noted.length),
      counted: sum("counted"),
      further: sum("further"),
      exempt: sum("exempt"),
    };
  }
}

/** Entries that larders removed from their storage. */
export interface Evictions {
  readonly entries: number;
  /** At most so many more: a killed larder had not told them yet. */
  readonly untold: number;
}

/** Upstream requests for each path that counts. Each evicted entry explains one more. */
export function requestsPerPath(
  { counted, further }: Pick<RequestFigures, "counted" | "further">,
  { entries, untold }: Evictions,
): number {
  return 1 + Math.max(0, further - entries - untold) / Math.max(1, counted);
}
