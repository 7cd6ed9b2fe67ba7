import type { Logger } from "../../telemetry/logger.ts";

/** Time between two lines for one reason. */
const SUMMARY_EVERY_MS = 60_000;

/** "info": the client's own fault; "warn": the server ran out of something. */
export type ClosedLevel = "info" | "warn";

/** Logs closed connections by reason, without a line for each. */
export class ClosedLog {
  readonly #log: Pick<Logger, "event">;
  readonly #nowMs: () => number;
  readonly #seen = new Map<string, Seen>();

  constructor(log: Pick<Logger, "event">, nowMs: () => number) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /**
   * Logs the first one at once, and those of the next minute in one line. `reason` is one of few.
   */
  count(reason: string, level: ClosedLevel = "info"): void {
    const seen = this.#seen.get(reason);
    if (seen !== undefined) return void seen.count++;
    this.#seen.set(reason, { level, loggedAtMs: this.#nowMs(), count: 0 });
    this.#log.event("connections-closed", { reason, count: 1 }, level);
  }

  /** Logs the counts that are a minute old. Call it regularly. */
  flush(): void {
    const nowMs = this.#nowMs();
    for (const [reason, seen] of this.#seen) {
      if (nowMs - seen.loggedAtMs < SUMMARY_EVERY_MS) continue;
      if (seen.count === 0) {
        this.#seen.delete(reason);
        continue;
      }
      this.#log.event("connections-closed", { reason, count: seen.count }, seen.level);
      this.#seen.set(reason, { ...seen, loggedAtMs: nowMs, count: 0 });
    }
  }
}

interface Seen {
  readonly level: ClosedLevel;
  readonly loggedAtMs: number;
  count: number;
}
