import { paragraphs } from "./paragraphs.ts";
import type { Prose } from "./wording.ts";

/** Shorter strings are names, headings and labels. */
const CHARS_MIN = 20;

/** A text with fewer words is no sentence. */
const WORDS_MIN = 4;

/** Languages that strings hold, and that have rules of their own. */
const LANGUAGE_REGEXPS = [
  // SQL, also a part of a statement.
  /^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|PRAGMA)\b/,
  /\b(?:SELECT|FROM|WHERE|VALUES|JOIN)\b[^.]*\b[\w.]+\s*(?:[=<>,(]|IS\b|IN\b)/,
  // HTML, SVG, CSS, scripts, TOML, JSON, and the queries of Prometheus.
  /<\/?[a-z][^>]*>|=>|[{};]\s*$|^\s*[{[]|\b\w+\(.*\)\s*[/;{]/m,
];

/** The paragraphs of a string that begins in a line; none if it holds no prose. */
export function proseOfString(text: string, line: number): readonly Prose[] {
  if (text.length < CHARS_MIN || LANGUAGE_REGEXPS.some((one) => one.test(text))) return [];
  return paragraphs(text.split("\n").map(lineOfProse))
    .filter((prose) => prose.text.split(/\s+/).length >= WORDS_MIN)
    .map((prose) => ({ line: line + prose.line - 1, text: prose.text }));
}

/** A row of a table has no sentence. An indented line is a row of a list. */
function lineOfProse(line: string): string {
  if (line.startsWith("|")) return "";
  return /^\s+\S/.test(line) ? `\0${line.trim()}` : line;
}
