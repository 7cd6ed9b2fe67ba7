import type { SeenBytes } from "./space_budget.ts";

/** How an eviction run ended. */
export type RunEnd =
  | "reached"
  /** Nothing else may go. */
  | "exhausted"
  /** Another member evicts. */
  | "elsewhere"
  /** The run was stopped, or the disk or the database failed. */
  | "cut short";

/** The time after which larder tries a run again: the error may be over. */
const TRY_AGAIN_MS = 5_000;

export interface RunConditions {
  /** The run spared entries that were in use. */
  readonly hadBusy: boolean;
  readonly nowMs: number;
  /** Bytes in the storage at the end of the run. */
  readonly seen: SeenBytes;
}

/** Remembers whether another eviction run would free nothing. */
export class FailedRuns {
  #untilMs = -Infinity;
  #hadBusy = false;
  #seen: SeenBytes | undefined;

  ended(end: RunEnd, { hadBusy, nowMs, seen }: RunConditions): void {
    this.#hadBusy = hadBusy;
    this.#seen = seen;
    if (end === "reached" || end === "elsewhere") this.#untilMs = -Infinity;
    else this.#untilMs = end === "exhausted" ? Infinity : nowMs + TRY_AGAIN_MS;
  }

  /** False as soon as the storage holds something else: another member may have changed it. */
  has(nowMs: number, seen: SeenBytes): boolean {
    return nowMs < this.#untilMs && this.#seen !== undefined && isSame(seen, this.#seen);
  }

  /** A file is no longer in use, and may go. */
  unused(): void {
    if (this.#hadBusy) this.changed();
  }

  /** A pin or an entry was added or removed. */
  changed(): void {
    this.#untilMs = -Infinity;
  }
}

/** Pending bytes count: a file that another member removes cannot go, its successor can. */
function isSame(a: SeenBytes, b: SeenBytes): boolean {
  return a.usedBytes === b.usedBytes && a.pinnedBytes === b.pinnedBytes &&
    a.pendingBytes === b.pendingBytes;
}
