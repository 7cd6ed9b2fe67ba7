/** How an eviction run ended. */
export type RunEnd =
  | "reached"
  /** Nothing that is left may go. */
  | "exhausted"
  /** It was stopped, or something went wrong: the disk, or the database. */
  | "cut short";

/** What went wrong may be over after this. */
const TRY_AGAIN_MS = 5_000;

/** Whether another eviction run would free nothing more than the last one did. */
export class Futility {
  #untilMs = -Infinity;
  #hadBusy = false;

  /** `hadBusy`: some entries stayed because they were in use. */
  ended(end: RunEnd, { hadBusy, nowMs }: { readonly hadBusy: boolean; readonly nowMs: number }) {
    this.#hadBusy = hadBusy;
    if (end === "reached") this.#untilMs = -Infinity;
    else this.#untilMs = end === "exhausted" ? Infinity : nowMs + TRY_AGAIN_MS;
  }

  has(nowMs: number): boolean {
    return nowMs < this.#untilMs;
  }

  /** What was in use may go now. */
  unused(): void {
    if (this.#hadBusy) this.changed();
  }

  /** A pin came or went, or an entry. */
  changed(): void {
    this.#untilMs = -Infinity;
  }
}
