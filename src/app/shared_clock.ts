import { messageOf } from "../base/failure.ts";
import type { MemberBoard } from "../metadata/member_board.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";

/** Below this the clocks agree: time must not jump for the delay of a query. */
const AGREES_MS = 1_000;

/** Log lines and certificates of this machine are wrong by more than people expect. */
const DIFFERS_MS = 60_000;

export interface SharedClockDeps {
  readonly board: Pick<MemberBoard, "sharedNowMs">;
  /** The clock of this machine, in milliseconds since 1970. */
  readonly nowMs: () => number;
  readonly log: Logger;
}

/**
 * The time that all members share: that of this machine, less its difference from the database's.
 * Members compare the times that others wrote: of uses, of uploads that expire, of unused rows.
 */
export class SharedClock {
  readonly #deps: SharedClockDeps;
  readonly #outage: OutageLog<"clock-agrees">;
  #clockLeadMs = 0;

  constructor(deps: SharedClockDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "clock-agrees");
  }

  /** In milliseconds since 1970. */
  readonly nowMs = (): number => this.#deps.nowMs() - this.#clockLeadMs;

  /** Measures the difference. Without an answer the last one stays. Never rejects. */
  async measure(): Promise<void> {
    const { board, nowMs, log } = this.#deps;
    try {
      const askedAtMs = nowMs();
      const sharedMs = await board.sharedNowMs();
      const answeredAtMs = nowMs();
      const toleranceMs = AGREES_MS + Math.abs(answeredAtMs - askedAtMs) / 2;
      const clockLeadMs = Math.round((askedAtMs + answeredAtMs) / 2 - sharedMs);
      if (Math.abs(clockLeadMs - this.#clockLeadMs) <= toleranceMs) return;
      this.#clockLeadMs = Math.abs(clockLeadMs) <= toleranceMs ? 0 : clockLeadMs;
      this.#notify();
    } catch (error) {
      log.debug("clocks not compared", { error: messageOf(error) });
    }
  }

  #notify(): void {
    const facts = { ahead_s: Math.round(this.#clockLeadMs / 1_000) };
    if (Math.abs(this.#clockLeadMs) <= DIFFERS_MS) this.#outage.worked(facts);
    else this.#outage.failed("clock-differs", facts);
  }
}
