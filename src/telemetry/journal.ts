import { fstatSync } from "node:fs";

const STANDARD_OUTPUT = 1;

/** The priorities of sd-daemon(3). The journal takes `info` for a line without one. */
const PRIORITIES: readonly (readonly [start: string, priority: string])[] = [
  ['{"level":"debug"', "<7>"],
  ['{"level":"warn"', "<4>"],
  ['{"level":"error"', "<3>"],
];

/**
 * True if standard output is the journal: `JOURNAL_STREAM` then names its device and inode. A
 * program that a service started inherits the variable, but may write elsewhere.
 */
export function writesToJournal(variable: (name: string) => string | undefined): boolean {
  const stream = variable("JOURNAL_STREAM");
  if (stream === undefined) return false;
  try {
    const { dev, ino } = fstatSync(STANDARD_OUTPUT, { bigint: true });
    return stream === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** The priority of a JSON line of the log as the journal reads it: `<4>` for a warning. */
export function priorityOf(line: string): string {
  return PRIORITIES.find(([start]) => line.startsWith(start))?.[1] ?? "";
}
