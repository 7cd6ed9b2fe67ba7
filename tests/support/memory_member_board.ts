import type { MemberId } from "../../src/base/member_id.ts";
import { Failure } from "../../src/base/failure.ts";
import {
  type MemberBoard,
  type MemberReport,
  REPORT_KEPT_MS,
  REPORTS_MAX,
  STATUS_BYTES_MAX,
} from "../../src/metadata/member_board.ts";

interface Report {
  readonly status: string;
  readonly atMs: number;
}

/** The board of members in one process. */
export class MemoryMemberBoard implements MemberBoard {
  readonly #nowMs: () => number;
  readonly #reports: Map<MemberId, Report>;

  /** `reports`: of other members, whatever their length. */
  constructor(nowMs: () => number, reports: Iterable<readonly [MemberId, Report]> = []) {
    this.#nowMs = nowMs;
    this.#reports = new Map(reports);
  }

  async report(member: MemberId, status: string): Promise<readonly MemberReport[]> {
    if (new TextEncoder().encode(status).length > STATUS_BYTES_MAX) {
      throw new Failure("broken", "Cannot report: the status is too long");
    }
    const nowMs = this.#nowMs();
    for (const [id, { atMs, ...report }] of this.#reports) {
      if (atMs < nowMs - REPORT_KEPT_MS) this.#reports.delete(id);
      else if (atMs > nowMs) this.#reports.set(id, { ...report, atMs: nowMs });
    }
    this.#reports.delete(member);
    const others = [...this.#reports].toSorted(([, one], [, other]) => other.atMs - one.atMs);
    const own: Report = { status, atMs: nowMs };
    this.#reports.set(member, own);
    return [[member, own] as const, ...others].slice(0, REPORTS_MAX).map(([id, report]) => (
      { id, status: report.status, silentMs: nowMs - report.atMs }
    ));
  }

  async withdraw(member: MemberId): Promise<void> {
    this.#reports.delete(member);
  }

  async sharedNowMs(): Promise<number> {
    return this.#nowMs();
  }
}
