import type { Settings } from "../config/options.ts";
import { priorityOf, writesToJournal } from "../telemetry/journal.ts";
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
