import { type PullRow, PULLS_MAX, type PullSummary } from "../pull_keeper.ts";
import type { Statements } from "./statements.ts";

/** The statements about pulls. */
export const PULLS_SQL = {
  addPull: `INSERT INTO pull (id, client, summary, paths) VALUES (?, ?, ?, ?)
    ON CONFLICT DO NOTHING`,
  expirePulls: `DELETE FROM pull
    WHERE number < (SELECT number FROM pull ORDER BY number DESC LIMIT 1 OFFSET ?1 - 1)`,
  pulls: `SELECT id, client, summary FROM pull WHERE ?1 IS NULL OR client = ?1
    ORDER BY number DESC LIMIT ?2`,
  findPull: "SELECT id, client, summary, paths FROM pull WHERE id = ?",
} as const;

/** Call it within a transaction. */
export function writePulls(statements: Statements, rows: readonly PullRow[]): void {
  for (const { id, client, summary, paths } of rows) {
    statements.addPull.run(id, client, summary, paths);
  }
  statements.expirePulls.run(PULLS_MAX);
}

export function readPulls(
  statements: Statements,
  countMax: number,
  client?: string,
): readonly PullSummary[] {
  return statements.pulls.all(client ?? null, countMax).map(readPull);
}

export function readPull(row: Record<string, unknown>): PullRow {
  return {
    id: String(row["id"]),
    client: String(row["client"]),
    summary: String(row["summary"]),
    paths: String(row["paths"] ?? "[]"),
  };
}
