/** The paths of one kind, and the requests for them. */
export interface RequestFigures {
  readonly paths: number;
  readonly perPath: number;
  /** The same for paths that were first requested while locks and database worked. */
  readonly perSharedPath: number;
}

interface Noted {
  requests: number;
  readonly isShared: boolean;
}

/** Counts the requests to an upstream. */
export class UpstreamRequests {
  readonly #noted = new Map<string, Noted>();

  /** `isShared`: locks and database work, so that larders can know of each other. */
  note(path: string, isShared: boolean): void {
    const noted = this.#noted.get(path);
    if (noted === undefined) this.#noted.set(path, { requests: 1, isShared });
    else noted.requests++;
  }

  figures(kind: RegExp): RequestFigures {
    const noted = [...this.#noted].filter(([path]) => kind.test(path)).map(([, one]) => one);
    return {
      paths: noted.length,
      perPath: meanRequests(noted),
      perSharedPath: meanRequests(noted.filter(({ isShared }) => isShared)),
    };
  }
}

function meanRequests(noted: readonly Noted[]): number {
  return noted.reduce((sum, { requests }) => sum + requests, 0) / Math.max(1, noted.length);
}
