import { fstatSync } from "node:fs";
import type { Settings } from "../config/options.ts";
import type { LineFormat } from "../telemetry/line_queue.ts";

/**
 * The form of the log's lines on standard output; `undefined` for JSON as it comes. The journal
 * gets a priority in front of each line, which it removes.
 */
export async function logFormat(settings: Settings): Promise<LineFormat | undefined> {
  const isJournal = writesToJournal((name) => Deno.env.get(name));
  const pretty = settings["log-format"] === "pretty" ? await prettyFormat(isJournal) : undefined;
  if (!isJournal) return pretty;
  if (pretty === undefined) return (line) => priorityOf(line) + line;
  return (line) => {
    const priority = priorityOf(line);
    // A priority counts for one line.
    return pretty(line).replaceAll(/^(?=.)/gm, priority);
  };
}

/** Loaded on demand, as machines read JSON. */
async function prettyFormat(isJournal: boolean): Promise<LineFormat> {
  const { prettyLine } = await import("../telemetry/pretty/pretty_line.ts");
  const columns = Deno.stdout.isTerminal() ? terminalColumns() : undefined;
  return prettyLine({ hasColors: hasColors(), hasTime: !isJournal, columns });
}

/** True if standard output is a terminal, and `NO_COLOR` is not set. */
export function hasColors(): boolean {
  return Deno.stdout.isTerminal() && !Deno.noColor;
}

/** `undefined` if the terminal does not know its width. */
function terminalColumns(): number | undefined {
  try {
    return Deno.consoleSize().columns || undefined;
  } catch {
    return undefined;
  }
}

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
