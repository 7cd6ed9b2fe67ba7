import type { Fact, Facts } from "../../base/failure.ts";
import { counted, formatBytes, formatMs } from "../../base/format_units.ts";
import { visible } from "../../base/visible.ts";
import { REQUEST_LINE } from "../events.ts";
import type { LogLevel } from "../logger.ts";

/** Message and facts of a line, in words. Each is one line, and acts on no terminal. */
export interface FactWords {
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
