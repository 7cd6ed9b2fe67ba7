import { type PullRow, PULLS_MAX } from "../pull_keeper.ts";
import type { Statements } from "./statements.ts";

/** The statements about pulls. */
export const PULLS_SQL = {
  addPull: `INSERT INTO pull (id, client, summary, paths) VALUES (?, ?, ?, ?)
    ON CONFLICT DO NOTHING`,
  expirePulls: `DELETE FROM pull
    WHERE number < (SELECT number FROM pull ORDER BY number DESC LIMIT 1 OFFSET ?1 - 1)`,
} as const;

/** Call it within a transaction. */
export function writePulls(statements: Statements, rows: readonly PullRow[]): void {
  for (const { id, client, summary, paths } of rows) {
    statements.addPull.run(id, client, summary, paths);
  }
  statements.expirePulls.run(PULLS_MAX);
}
