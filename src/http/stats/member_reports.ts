import { messageOf } from "../../base/failure.ts";
import type { MemberId } from "../../base/member_id.ts";
import type { MemberBoard, MemberReport } from "../../metadata/member_board.ts";
import { BEAT_EVERY_MS } from "../../space/recover.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { formatStatus, type MemberStatus, parseStatus } from "./member_status.ts";
import type { MemberStats } from "./stats.ts";

/** A member that has missed three reports is gone. */
const GONE_AFTER_MS = 3 * BEAT_EVERY_MS;

/** A failed report is written again so soon: a short outage must not cost one its place. */
const AGAIN_AFTER_MS = 1_000;

/** An exchange takes milliseconds. One that took longer waited for a database that hung. */
const HUNG_MS = 2_000;

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
  /** When the database answered again; `undefined` while it does not. */
  #answersSinceMs: number | undefined = -Infinity;
  /** The members that were gone before it did. */
  #goneBefore: ReadonlySet<MemberId> = new Set();
  #running: Promise<void> | undefined;
  #again: Timer | undefined;
  #isOver = false;

  constructor(deps: MemberReportsDeps) {
    this.#deps = deps;
  }

  /** Writes this member's report, and reads all. One at a time; it logs failures. */
  exchange(): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    this.#again?.cancel();
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
    const atMs = this.#knownAtMs;
    // Nobody could report while the database was away. That silence says nothing.
    const isHeard = atMs + sinceMs - (this.#answersSinceMs ?? Infinity) < GONE_AFTER_MS;
    return this.#known.map((report, at) => {
      const isSilent = report.id !== self && report.silentMs + sinceMs >= GONE_AFTER_MS &&
        (!isHeard || this.#goneBefore.has(report.id));
      return statsOf(report, statuses[at], { isSelf: report.id === self, isSilent, atMs });
    });
  }

  /** Withdraws the report: this member ends as planned. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#again?.cancel();
    await this.#running;
    if (this.#known.length === 0) return;
    await this.#deps.board.withdraw(this.#deps.self).catch((error) => this.#failed(error));
  }

  async #exchange(): Promise<void> {
    const { board, self, status, nowMs } = this.#deps;
    const beganAtMs = nowMs();
    try {
      const known = await board.report(self, formatStatus(await status()));
      const atMs = nowMs();
      const isLate = this.#knownAtMs > 0 && atMs - this.#knownAtMs > 2 * BEAT_EVERY_MS;
      if (isLate || atMs - beganAtMs > HUNG_MS) this.#wasAway();
      this.#known = known;
      this.#statuses = undefined;
      this.#knownAtMs = atMs;
      this.#answersSinceMs ??= atMs;
      await this.#succeed();
    } catch (error) {
      this.#wasAway();
      if (!this.#isOver) {
        this.#again = clock.after(AGAIN_AFTER_MS, () => void this.exchange(), false);
      }
      this.#failed(error);
    }
  }

  /** The database did not answer, or this member did not run. Those who were gone still are. */
  #wasAway(): void {
    if (this.#answersSinceMs === undefined) return;
    const gone = this.#listed().filter(({ state }) => state === "gone" || state === "left");
    this.#goneBefore = new Set(gone.map(({ id }) => id));
    this.#answersSinceMs = undefined;
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
  readonly isSelf: boolean;
  readonly isSilent: boolean;
  /** Time of the exchange that brought the report. */
  readonly atMs: number;
}

function statsOf(
  { id, silentMs }: MemberReport,
  parsed: MemberStatus | undefined,
  { isSelf, isSilent, atMs }: ReportLook,
) {
  // One that was draining has ended as planned, at the latest by its service manager.
  const [silent, alive] = parsed?.is_draining
    ? ["left", "draining"] as const
    : ["gone", "running"] as const;
  const { is_draining: _, ...shown } = parsed ?? UNKNOWN;
  return {
    id,
    is_self: isSelf,
    state: isSilent ? silent : alive,
    reported_at: new Date(atMs - silentMs).toISOString(),
    ...shown,
  } as const;
}

/**
 * True where a member has started since the last report of `other`, in its place: at its URL, or on
 * its host where neither has one and `other` is gone.
 */
function isSuccessor(one: MemberStats, other: MemberStats): boolean {
  if (one.state !== "running" || one.url !== other.url) return false;
  if ((one.started_at ?? "") < other.reported_at) return false;
  if (one.url !== null) return one.id !== other.id;
  const isGone = other.state === "gone" || other.state === "left";
  return isGone && one.host !== "" && one.host === other.host;
}

/** Placeholder for a report that this version cannot read. */
const UNKNOWN: MemberStatus = {
  ...{ host: "", version: "", url: null, started_at: null, is_draining: false },
  ...{ requests_per_second: null, hit_ratio: null, upstreams: { up: 0, down: 0 }, problems: 0 },
  downloads: { count: 0, under_way: [] },
};
