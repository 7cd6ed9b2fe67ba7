/** How an eviction run ended. */
export type RunEnd =
  | "reached"
  /** Nothing else may go. */
  | "exhausted"
  /** Another member evicts. */
  | "elsewhere"
  /** The run was stopped, or the disk or the database failed. */
  | "cut short";

/** The time after which a run is tried again: the error may be over. */
const TRY_AGAIN_MS = 5_000;

/** Remembers whether another eviction run would free nothing. */
export class Futility {
  #untilMs = -Infinity;
  #hadBusy = false;

  /** `hadBusy`: the run spared entries that were in use. */
  ended(end: RunEnd, { hadBusy, nowMs }: { readonly hadBusy: boolean; readonly nowMs: number }) {
    this.#hadBusy = hadBusy;
    if (end === "reached" || end === "elsewhere") this.#untilMs = -Infinity;
    else this.#untilMs = end === "exhausted" ? Infinity : nowMs + TRY_AGAIN_MS;
  }

  has(nowMs: number): boolean {
    return nowMs < this.#untilMs;
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
