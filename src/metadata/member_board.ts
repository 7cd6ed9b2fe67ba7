import type { MemberId } from "../base/member_id.ts";

/** The last report of a member to the others. */
export interface MemberReport {
  readonly id: MemberId;
  /** Written by another process: check it like other input. */
  readonly status: string;
  /** The time from this report to the last one of the member that asks. */
  readonly silentMs: number;
}

/** Bytes of a status; the board refuses a longer one. */
export const STATUS_BYTES_MAX = 16_384;

/** A dead member's report stays for so long, by the clock of the database's users. */
export const REPORT_KEPT_MS = 15 * 60_000;

/** The board lists no further members. */
export const REPORTS_MAX = 64;

/** The reports of all members on their state, and the clock beside them. */
export interface MemberBoard {
  /** Replaces the member's report. Resolves to all reports, its own first, then the newest. */
  report(member: MemberId, status: string): Promise<readonly MemberReport[]>;
  /** Removes the report of a member that ends as planned. */
  withdraw(member: MemberId): Promise<void>;
  /** The time by the one clock of all members, in milliseconds since 1970. */
  sharedNowMs(): Promise<number>;
}

/** A row of a report. */
export interface ReportColumns {
  readonly id: string;
  readonly reported_at_ms: number;
  readonly status: string;
}

/** The reports of rows whose first one is the member's own. */
export function readReports(rows: readonly ReportColumns[]): readonly MemberReport[] {
  const atMs = Number(rows[0]?.reported_at_ms ?? 0);
  return rows.map(({ id, status, reported_at_ms }) => (
    { id, status, silentMs: Math.max(0, atMs - Number(reported_at_ms)) }
  ));
}
