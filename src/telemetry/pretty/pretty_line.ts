import type { Fact, Facts } from "../../base/failure.ts";
import { counted, formatBytes, formatMs } from "../../base/format_units.ts";
import { visible, visibleLines } from "../../base/visible.ts";
import { REQUEST_LINE } from "../events.ts";
import type { LineFormat } from "../line_queue.ts";
import { LOG_LEVELS, type LogLevel } from "../logger.ts";
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

/** Message and facts of a line, in words. Each is one line, and acts on no terminal. */
interface FactWords {
  readonly message: string;
  readonly words: string;
}

/** Shown by the subject, by the message, or below the line. */
const SHOWN_ELSEWHERE = ["name", "stack", "method", "route", "status", "x_cache"];

/** Facts for a search in other logs: at the end of warnings, errors and debug lines. */
const FOR_SEARCHES = ["nar", "path", "trace_id", "span_id"];

/** Facts for machines alone. */
const FOR_MACHINES = ["trace_flags", "pid", "request_id"];

/** Facts that need no name, in this order. The others come between them and the last ones. */
const FIRST: Readonly<Record<string, (fact: Fact) => string>> = {
  url: String,
  file_size: (fact) => formatBytes(Number(fact)),
  bytes: (fact) => formatBytes(Number(fact)),
  bytes_per_second: (fact) => `at ${formatBytes(Number(fact))}/s`,
  duration_ms: (fact) => `in ${formatMs(Number(fact))}`,
  upstream: (fact) => `from ${fact}`,
  client: (fact) => `to ${fact}`,
};
const OUTCOMES: Readonly<Record<string, string>> = {
  aborted: "the client left",
  stopped: "larder stopped",
  closed: "larder closed the connection",
  broken: "the transfer broke",
};
const LAST: Readonly<Record<string, (fact: Fact) => string>> = {
  mended: (fact) => `${fact} mended`,
  outcome: (fact) => OUTCOMES[String(fact)] ?? String(fact),
  reason: (fact) => `reason: ${String(fact).replaceAll("_", " ")}`,
  detail: (fact) => shortError(String(fact)),
  error: (fact) => shortError(String(fact)),
  hint: (fact) => `hint: ${fact}`,
};

/** Sizes whose names do not say so. */
const SIZES: ReadonlySet<string> = new Set(["received", "file_size", "bytes"]);

/** Names of counts. */
const PLURAL_REGEXP = /^(?!status$)[a-z]+s$/;

/** The message and the facts of a line for people, with sizes and durations in their units. */
export function factWords(msg: string, facts: Facts, level: LogLevel): FactWords {
  const left = new Set(leftOut(facts));
  const shown = Object.entries(facts).filter(([name]) => !left.has(name));
  const inWords = (table: typeof FIRST) =>
    Object.entries(table).flatMap(([name, print]) => {
      const fact = shown.find(([one]) => one === name);
      return fact === undefined ? [] : [visible(print(fact[1]))];
    });
  const isSpoken = (name: string) => Object.hasOwn(FIRST, name) || Object.hasOwn(LAST, name);
  const named = shown.filter(([name]) => !isSpoken(name));
  const searched = named.filter(([name]) => FOR_SEARCHES.includes(name) && level !== "info");
  const others = named.filter(([name]) => !FOR_SEARCHES.includes(name));
  const words = [
    ...[...inWords(FIRST), ...others.map(namedFact)],
    ...[...inWords(LAST), ...searched.map(namedFact)],
  ];
  return { message: visible(messageOf(msg, facts)), words: words.join("  ") };
}

/** The facts that the line shows elsewhere, or that mean nothing to a person. */
function leftOut(
  { name, nar, upstream, route, outcome, reason, detail }: Facts,
): readonly string[] {
  const isSubject = name === undefined && nar === undefined;
  const subject = upstream === undefined ? "path" : "upstream";
  return [
    ...[...SHOWN_ELSEWHERE, ...FOR_MACHINES],
    ...outcome === "complete" ? ["outcome"] : [],
    // The detail has the status in words.
    ...reason === "status" && detail !== undefined ? ["reason"] : [],
    ...isSubject && (subject === "upstream" || route !== undefined) ? [subject] : [],
  ];
}

/** An error of an HTTP client without its chain of causes, whose last one says it. */
function shortError(text: string): string {
  return text.replace(/error sending request for url \(\S*\): (?:[^:]+: )*/, "");
}

/**
 * A request's line begins with method, status and `X-Cache`: `GET 200 MISS`. Where the subject is a
 * package and no NAR, the path is there, too: `POST /pin 200`.
 */
function messageOf(msg: string, { method, status, x_cache, name, nar, route }: Facts): string {
  if (method === undefined || status === undefined) return msg;
  if (msg !== REQUEST_LINE) return status === 200 ? msg : `${msg} ${status}`;
  const isNamed = name !== undefined && nar === undefined && route !== undefined;
  const place = isNamed ? /^\/\w+/.exec(String(route))?.[0] : undefined;
  return [method, place, status, x_cache].filter((word) => word !== undefined).join(" ");
}

/** `used=1.5 GiB`, `3 files`, `no sizes`, `token=ci`. */
function namedFact([name, fact]: readonly [string, Fact]): string {
  const unit = /_(bytes|ms)$/.exec(name)?.[1];
  const shown = visible(unit === undefined ? name : name.slice(0, -unit.length - 1));
  if (typeof fact === "boolean") return fact ? shown : `no ${shown}`;
  if (typeof fact === "number" && unit === undefined && PLURAL_REGEXP.test(shown)) {
    return counted(fact, shown.replace(/ies$/, "ys").slice(0, -1), shown);
  }
  if (typeof fact !== "number") return `${shown}=${quoted(String(fact))}`;
  if (unit === "ms") return `${shown}=${formatMs(fact)}`;
  return `${shown}=${unit === "bytes" || SIZES.has(name) ? formatBytes(fact) : fact}`;
}

/** Text in quotes, if it is empty or contains a blank, a quote or an equals sign. */
function quoted(text: string): string {
  return /^[^\s"=]+$/.test(text) ? visible(text) : visible(JSON.stringify(text));
}
