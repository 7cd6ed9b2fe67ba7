import type { Logger } from "../../telemetry/logger.ts";

/** A line a reason in this time at most, however many connections there are. */
const SUMMARY_EVERY_MS = 60_000;

/** What was closed for its own fault, and what was closed because of all the others. */
export type ClosedLevel = "info" | "warn";

/** Says what was closed, and how often, without a line for each. */
export class ClosedLog {
  readonly #log: Pick<Logger, ClosedLevel>;
  readonly #nowMs: () => number;
  readonly #seen = new Map<string, Seen>();

  constructor(log: Pick<Logger, ClosedLevel>, nowMs: () => number) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /**
   * The first is logged at once; those that follow in the same minute with the next line.
   * `reason` is one of few.
   */
  count(reason: string, level: ClosedLevel = "info"): void {
    const seen = this.#seen.get(reason);
    if (seen !== undefined) return void seen.count++;
    this.#seen.set(reason, { level, loggedAtMs: this.#nowMs(), count: 0 });
    this.#log[level]("connections closed", { reason, count: 1 });
  }

  /** Logs the sums of what was counted for a minute. Call it now and then. */
  flush(): void {
    const nowMs = this.#nowMs();
    for (const [reason, seen] of this.#seen) {
      if (nowMs - seen.loggedAtMs < SUMMARY_EVERY_MS) continue;
      if (seen.count === 0) {
        this.#seen.delete(reason);
        continue;
      }
      this.#log[seen.level]("connections closed", { reason, count: seen.count });
      this.#seen.set(reason, { ...seen, loggedAtMs: nowMs, count: 0 });
    }
  }
}

interface Seen {
  readonly level: ClosedLevel;
  readonly loggedAtMs: number;
  count: number;
}
