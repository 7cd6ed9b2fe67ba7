import type { MemberId } from "../../base/member_id.ts";
import {
  type MemberBoard,
  type MemberReport,
  readReports,
  REPORT_KEPT_MS,
  type ReportColumns,
  REPORTS_MAX,
} from "../member_board.ts";
import type { Database } from "./database.ts";
import { postgresWriteFailure } from "./writer.ts";

const SQL = {
  report: "SELECT id, reported_at_ms, status FROM report_member($1, $2, $3, $4, $5)",
  withdraw: "DELETE FROM member_report WHERE id = $1",
  now: "SELECT coalesce($1, extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms",
} as const;

/** The reports of the members in a PostgreSQL database. */
export class PostgresMemberBoard implements MemberBoard {
  readonly #database: Pick<Database, "query">;
  readonly #nowMs: () => number | null;

  /** `nowMs`: `null` is the server's clock. */
  constructor(database: Pick<Database, "query">, nowMs: () => number | null) {
    this.#database = database;
    this.#nowMs = nowMs;
  }

  async report(member: MemberId, status: string): Promise<readonly MemberReport[]> {
    const values = [member, status, this.#nowMs(), REPORT_KEPT_MS, REPORTS_MAX];
    return readReports(await this.#query("report", values) as unknown as readonly ReportColumns[]);
  }

  async withdraw(member: MemberId): Promise<void> {
    await this.#query("withdraw", [member]);
  }

  async sharedNowMs(): Promise<number> {
    return Number((await this.#query("now", [this.#nowMs()]))[0]?.["ms"]);
  }

  /** Waits for no outage: the next report comes soon. */
  async #query(name: keyof typeof SQL, values: readonly unknown[]) {
    try {
      return await this.#database.query({ name: `${name}Member`, text: SQL[name], values }, 0);
    } catch (error) {
      throw postgresWriteFailure(error);
    }
  }
}
