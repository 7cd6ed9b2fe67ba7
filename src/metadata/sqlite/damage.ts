import type { StatementSync } from "node:sqlite";
import { Failure, messageOf } from "../../base/failure.ts";
import { resultCodeOf, SQLITE_CORRUPT } from "./result_codes.ts";

/** SQLite's line above the faults of one database. */
const HEADING_REGEXP = /^\*\*\* in database \w+ \*\*\*$/;

/** One line for each fault that `PRAGMA quick_check` finds. Throws where it does not end. */
export function damageOf(quickCheck: StatementSync): readonly string[] {
  const lines: string[] = [];
  try {
    // A corrupt page may end the check with an error: all() would lose the lines before.
    for (const row of quickCheck.iterate()) lines.push(...String(row["quick_check"]).split("\n"));
  } catch (error) {
    if (resultCodeOf(error) !== SQLITE_CORRUPT) throw error;
    lines.push(messageOf(error));
  }
  if (lines.length === 0) throw new Failure("broken", "Cannot check database: no result came");
  return lines.filter((line) => line !== "ok" && !HEADING_REGEXP.test(line));
}
