import type { Facts } from "../../base/failure.ts";
import { visible, visibleLines } from "../../base/visible.ts";
import type { LineFormat } from "../line_queue.ts";
import { LOG_LEVELS, type LogLevel } from "../logger.ts";
import { factWords } from "./fact_words.ts";
import { paint, type Paints } from "./paint.ts";
import { subjectOf } from "./subject.ts";

export interface PrettyStyle {
  readonly hasColors: boolean;
  /** False if the reader of the lines adds the time, as the journal does. */
  readonly hasTime: boolean;
  /** The terminal's width; `undefined` if there is no terminal. */
  readonly columns: number | undefined;
}

/** Narrower terminals have no room for a column of messages beside the facts. */
const WIDE_FROM_COLUMNS = 100;

const LEVEL_COLUMNS = 5;
const SUBJECT_COLUMNS = { wide: 28, narrow: 20 } as const;
const MESSAGE_COLUMNS = { wide: 29, narrow: 0 } as const;

/** Most lines are `info`: without a word for it the others stand out. */
const LEVEL_WORDS: Readonly<Record<LogLevel, string>> = {
  debug: "debug",
  info: "",
  warn: "WARN",
  error: "ERROR",
};

/**
 * Formats the JSON lines of the log for people: time, level, subject, message, facts. Any other
 * line stays as it is.
 */
export function prettyLine(style: PrettyStyle): LineFormat {
  const width = (style.columns ?? Infinity) >= WIDE_FROM_COLUMNS ? "wide" : "narrow";
  const paints = paint(style.hasColors);
  return (line) => {
    const parsed = parsedLine(line);
    if (parsed === undefined) return line;
    const { level, ts, msg, facts } = parsed;
    const full = visible(subjectOf(facts));
    const columns = SUBJECT_COLUMNS[width];
    // Outside a terminal a search must find the whole name.
    const subject = (style.columns === undefined ? full : fitted(full, columns)).padEnd(columns);
    const { message, words } = factWords(msg, facts, level);
    const start = style.hasTime ? `${paints.faint(timeOf(ts))} ` : "";
    const mark = paints[level](LEVEL_WORDS[level].padEnd(LEVEL_COLUMNS));
    const padded = message.padEnd(words === "" ? 0 : MESSAGE_COLUMNS[width]);
    const text = `${start}${mark} ${paints.strong(subject)} ${padded}${words && `  ${words}`}`;
    return `${text.trimEnd()}\n${stackOf(facts, paints)}`;
  };
}

interface LogParts {
  readonly level: LogLevel;
  readonly ts: string;
  readonly msg: string;
  readonly facts: Facts;
}

function parsedLine(line: string): LogParts | undefined {
  try {
    const { level, ts, msg, ...facts } = JSON.parse(line);
    const isLog = LOG_LEVELS.includes(level) && typeof ts === "string" && typeof msg === "string";
    return isLog ? { level, ts, msg, facts } : undefined;
  } catch {
    return undefined;
  }
}

/** Cut in the middle, as both ends of a name tell it from others. */
function fitted(text: string, columns: number): string {
  if (text.length <= columns) return text;
  const atEnd = Math.floor(columns / 3);
  return `${text.slice(0, columns - atEnd - 1)}…${text.slice(-atEnd)}`;
}

/** The time of day here. */
function timeOf(ts: string): string {
  return new Date(ts).toTimeString().slice(0, "HH:MM:SS".length);
}

/** The only fact of several lines. Indented, so that none looks like a line of its own. */
function stackOf({ stack }: Facts, paints: Paints): string {
  if (typeof stack !== "string") return "";
  const lines = visibleLines(stack).split("\n").map((one) => `      ${paints.faint(one.trim())}\n`);
  return lines.join("");
}
