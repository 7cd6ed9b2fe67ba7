import type { Facts } from "../../base/failure.ts";
import { visible, visibleLines } from "../../base/visible.ts";
import type { LineFormat } from "../line_queue.ts";
import { LOG_LEVELS, type LogLevel } from "../logger.ts";
import { factWords } from "./fact_words.ts";
import { paint, type Paints } from "./paint.ts";

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

/** Enough of a hash to tell NAR files apart. */
const HASH_CHARS = 8;

/** The hash of a store path, or of a NAR. */
const HASH_REGEXP = /\b[0-9a-z]{32,}\b/g;

/**
 * Subject of a log line: a package such as `firefox-130.0`, else the NAR file, the upstream or
 * the request's path, else larder itself.
 */
function subjectOf({ name, nar, upstream, path, route }: Facts): string {
  if (name !== undefined) return String(name);
  if (nar !== undefined) return shortNar(String(nar));
  if (upstream !== undefined) return hostOf(String(upstream));
  if (path !== undefined && route !== undefined) return shortHashes(String(path));
  return "larder";
}

/** `/pin/0a1b2c3d….narinfo`: whole hashes are wider than the column of names. */
function shortHashes(path: string): string {
  return path.replaceAll(HASH_REGEXP, (text) => `${text.slice(0, HASH_CHARS)}…`);
}

/** `0a1b2c3d….nar.xz` for the name of a NAR file. */
function shortNar(nar: string): string {
  const dot = nar.indexOf(".");
  const end = dot < 0 ? nar.length : dot;
  return end <= HASH_CHARS ? nar : `${nar.slice(0, HASH_CHARS)}…${nar.slice(end)}`;
}

function hostOf(url: string): string {
  return URL.parse(url)?.host || url;
}
