import { messageOf } from "../../base/failure.ts";
import type { MemberId } from "../../base/member_id.ts";
import type { MemberBoard, MemberReport } from "../../metadata/member_board.ts";
import { BEAT_EVERY_MS } from "../../space/recover.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { formatStatus, type MemberStatus, parseStatus } from "./member_status.ts";
import type { MemberStats } from "./stats.ts";

/** A member that has missed three reports is gone. */
const GONE_AFTER_MS = 3 * BEAT_EVERY_MS;

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
  /** Their statuses, read once they are wanted. */
  #statuses: readonly (MemberStatus | undefined)[] | undefined;
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
    return !this.#deps.isShared && this.#known.length < 2 ? [] : this.#all();
  }

  /** The members in a state. One that is alone counts, too. */
  count(state: MemberStats["state"]): number {
    return this.#all().filter((one) => one.state === state).length;
  }

  #all(): readonly MemberStats[] {
    const all = this.#listed();
    return all.filter((one) => !all.some((other) => isSuccessor(other, one)));
  }

  #listed(): readonly MemberStats[] {
    const { self } = this.#deps;
    const statuses = this.#statuses ??= this.#known.map(({ status }) => parseStatus(status));
    // Silence goes on after the last exchange. Without another one in time nobody knows.
    const sinceMs = Math.max(0, Math.min(this.#deps.nowMs() - this.#knownAtMs, BEAT_EVERY_MS));
    const look = { self, sinceMs, atMs: this.#knownAtMs };
    return this.#known.map((report, at) => statsOf(report, statuses[at], look));
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
      this.#statuses = undefined;
      this.#knownAtMs = nowMs();
      await this.#succeed();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Withdraws the reports of those whose place this member has taken, for when it has left. */
  async #succeed(): Promise<void> {
    const { board } = this.#deps;
    const all = this.#known.length < 2 ? [] : this.#listed();
    const self = all.find((one) => one.is_self);
    if (self === undefined) return;
    for (const one of all) if (isSuccessor(self, one)) await board.withdraw(one.id);
  }

  /** A heartbeat that fails too is a warning already. */
  #failed(error: unknown): void {
    this.#deps.log.debug("member report not written", { error: messageOf(error) });
  }
}

interface ReportLook {
  readonly self: MemberId;
  /** Time of the exchange that brought the report, and how long ago that was. */
  readonly atMs: number;
  readonly sinceMs: number;
}

function statsOf(
  { id, silentMs }: MemberReport,
  parsed: MemberStatus | undefined,
  { self, atMs, sinceMs }: ReportLook,
) {
  const isSilent = id !== self && silentMs + sinceMs >= GONE_AFTER_MS;
  // One that was draining has ended as planned, at the latest by its service manager.
  const [silent, alive] = parsed?.is_draining
    ? ["left", "draining"] as const
    : ["gone", "running"] as const;
  const state = isSilent ? silent : alive;
  const { is_draining: _, ...shown } = parsed ?? UNKNOWN;
  return {
    id,
    is_self: id === self,
    state,
    reported_at: new Date(atMs - silentMs).toISOString(),
    ...shown,
  } as const;
}

/** True where the one that is gone runs again: the same host and URL, started since. */
function isSuccessor(one: MemberStats, gone: MemberStats): boolean {
  const isGone = gone.state === "gone" || gone.state === "left";
  return isGone && one.state === "running" && one.host !== "" && one.host === gone.host &&
    one.url === gone.url && (one.started_at ?? "") >= gone.reported_at;
}

/** Placeholder for a report that this version cannot read. */
const UNKNOWN: MemberStatus = {
  ...{ host: "", version: "", url: null, started_at: null, is_draining: false },
  ...{ requests_per_second: null, hit_ratio: null, upstreams: { up: 0, down: 0 }, problems: 0 },
  downloads: { count: 0, under_way: [] },
};
