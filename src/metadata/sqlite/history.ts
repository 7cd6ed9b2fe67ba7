import { type ExpiredSlots, FIGURES, type HistoryRow } from "../history_keeper.ts";
import type { Statements } from "./statements.ts";

const PUT = "INSERT INTO history (tier, at_ms, figure, amount) VALUES (?, ?, ?, ?) ON CONFLICT DO";

/** The statements about the history. */
export const HISTORY_SQL = {
  addFigure: `${PUT} UPDATE SET amount = amount + excluded.amount`,
  replaceFigure: `${PUT} UPDATE SET amount = excluded.amount`,
  keepFigure: `${PUT} NOTHING`,
  expireHistory: "DELETE FROM history WHERE tier = ? AND at_ms < ?",
} as const;

const STATEMENTS = { sum: "addFigure", last: "replaceFigure", first: "keepFigure" } as const;

/** Call it within a transaction. */
export function writeHistory(
  statements: Statements,
  rows: readonly HistoryRow[],
  expired: readonly ExpiredSlots[],
): void {
  for (const { tier, atMs, figure, amount } of rows) {
    statements[STATEMENTS[FIGURES[figure]]].run(tier, atMs, figure, amount);
  }
  for (const { tier, beforeMs } of expired) statements.expireHistory.run(tier, beforeMs);
}
