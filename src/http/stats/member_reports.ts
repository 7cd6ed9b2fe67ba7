import { messageOf } from "../../base/failure.ts";
import type { MemberId } from "../../base/member_id.ts";
import type { MemberBoard, MemberReport } from "../../metadata/member_board.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { formatStatus, type MemberStatus, parseStatus } from "./member_status.ts";
import type { MemberStats } from "./stats.ts";

/** A member that has not reported for so long is gone: it beats every five seconds. */
const GONE_AFTER_MS = 30_000;

export interface MemberReportsDeps {
  readonly board: MemberBoard;
  /** This member. */
  readonly self: MemberId;
  /** True if a member that is alone is listed too. */
  readonly isShared: boolean;
  readonly status: () => Promise<MemberStatus>;
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "debug">;
}

/** Exchanges reports with the other members, and keeps theirs in memory until the next exchange. */
export class MemberReports implements AsyncDisposable {
  readonly #deps: MemberReportsDeps;
  #known: readonly MemberReport[] = [];
  #knownAtMs = 0;
  #running: Promise<void> | undefined;
  #isOver = false;

  constructor(deps: MemberReportsDeps) {
    this.#deps = deps;
  }

  /** Writes this member's report, and reads all. One at a time; it logs failures. */
  exchange(): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    this.#running ??= this.#exchange().finally(() => this.#running = undefined);
    return this.#running;
  }

  /** The members of this storage, this one first; empty if it is alone on its machine. */
  list(): readonly MemberStats[] {
    const { isShared, self } = this.#deps;
    if (!isShared && this.#known.length < 2) return [];
    return this.#known.map((report) => statsOf(report, self, this.#knownAtMs));
  }

  /** Withdraws the report: this member ends as planned. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#running;
    if (this.#known.length === 0) return;
    await this.#deps.board.withdraw(this.#deps.self).catch((error) => this.#failed(error));
  }

  async #exchange(): Promise<void> {
    const { board, self, status, nowMs } = this.#deps;
    try {
      this.#known = await board.report(self, formatStatus(await status()));
      this.#knownAtMs = nowMs();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** A heartbeat that fails too is a warning already. */
  #failed(error: unknown): void {
    this.#deps.log.debug("member report not written", { error: messageOf(error) });
  }
}

function statsOf({ id, status, silentMs }: MemberReport, self: MemberId, atMs: number) {
  const parsed = parseStatus(status);
  const state = silentMs >= GONE_AFTER_MS ? "gone" : parsed?.is_draining ? "draining" : "running";
  const { is_draining: _, ...shown } = parsed ?? UNKNOWN;
  return {
    id,
    is_self: id === self,
    state,
    reported_at: new Date(atMs - silentMs).toISOString(),
    ...shown,
  } as const;
}

/** Placeholder for a report that this version cannot read. */
const UNKNOWN: MemberStatus = {
  ...{ host: "", version: "", url: null, started_at: null, is_draining: false },
  ...{ requests_per_second: null, hit_ratio: null, upstreams: { up: 0, down: 0 }, problems: 0 },
  downloads: { count: 0, under_way: [] },
};
