import type { MemberId } from "../../base/member_id.ts";
import {
  type MemberBoard,
  type MemberReport,
  readReports,
  REPORT_KEPT_MS,
  type ReportColumns,
  REPORTS_MAX,
} from "../member_board.ts";
import type { Statements } from "./statements.ts";

/** The statements about the reports of members. */
export const MEMBER_BOARD_SQL = {
  putReport: `INSERT INTO member_report (id, reported_at_ms, status) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET reported_at_ms = excluded.reported_at_ms, status = excluded.status`,
  // After the clock was set back: reports from the future would never grow old.
  ageReports: "UPDATE member_report SET reported_at_ms = ?1 WHERE reported_at_ms > ?1",
  expireReports: "DELETE FROM member_report WHERE reported_at_ms < ?",
  reports: `SELECT id, reported_at_ms, status FROM member_report
    ORDER BY id <> ?1, reported_at_ms DESC, id LIMIT ?2`,
  removeReport: "DELETE FROM member_report WHERE id = ?",
} as const;

export interface SqliteMemberBoardDeps {
  readonly statements: Statements;
  readonly nowMs: () => number;
  /** Runs a small write in a transaction. */
  readonly within: <Value>(work: () => Value) => Promise<Value>;
}

/** The reports of the members in an SQLite file. */
export class SqliteMemberBoard implements MemberBoard {
  readonly #deps: SqliteMemberBoardDeps;

  constructor(deps: SqliteMemberBoardDeps) {
    this.#deps = deps;
  }

  report(member: MemberId, status: string): Promise<readonly MemberReport[]> {
    const { statements, nowMs, within } = this.#deps;
    return within(() => {
      const atMs = nowMs();
      statements.ageReports.run(atMs);
      statements.putReport.run(member, atMs, status);
      statements.expireReports.run(atMs - REPORT_KEPT_MS);
      const rows = statements.reports.all(member, REPORTS_MAX);
      return readReports(rows as unknown as readonly ReportColumns[]);
    });
  }

  async withdraw(member: MemberId): Promise<void> {
    const { statements, within } = this.#deps;
    await within(() => statements.removeReport.run(member));
  }

  /** All members have the clock of their machine. */
  sharedNowMs(): Promise<number> {
    return Promise.resolve(this.#deps.nowMs());
  }
}
