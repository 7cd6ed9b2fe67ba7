import { paragraphs } from "./paragraphs.ts";
import type { Prose } from "./wording.ts";

/** A line of a comment, without its marks. */
const COMMENT_REGEXP = /^\s*(?:\/\*\*?|\*\/|\*(?= |$)|\/\/)\s?(.*?)\s*(?:\*\/)?$/;

/** The comments of a source file that have lines of their own, by paragraph. */
export function commentsOf(source: string): readonly Prose[] {
  return paragraphs(source.split("\n").map((line) => COMMENT_REGEXP.exec(line)?.[1] ?? ""));
}

/** The beginnings of test names: of tests, of properties, and of contract clauses. */
const NAME_REGEXPS = [
  /\b(?:Deno\.test|checkProperty|\w*[tT]est)\(\s*(["`])(.+?)\1/g,
  /\btestUnless\(\s*\w+(?:\([^)]*\))?,\s*(["`])(.+?)\1/g,
  /^\s*name:\s*(["`])(.+?)\1/gm,
  /^ {2}(")(.+?)": (?:async )?\(/gm,
];

/** The names of the tests in a source file, with "Code" for values. */
export function testNamesOf(source: string): readonly Prose[] {
  return NAME_REGEXPS.flatMap((regexp) => [...source.matchAll(regexp)])
    .map(({ index, 2: name = "" }) => ({
      line: source.slice(0, index).split("\n").length,
      text: name.replace(/\$\{[^}]*\}/g, "Code"),
    }));
}

/** The paragraphs and list items of a Markdown file, without code, tables and headings. */
export function paragraphsOf(document: string): readonly Prose[] {
  let isCode = false;
  return paragraphs(
    document.split("\n").flatMap((line) => {
      if (line.trimStart().startsWith("```")) isCode = !isCode;
      if (isCode || /^\s*(?:[|#<]|```)/.test(line)) return [""];
      return /^\s*(?:[*-]|\d+\.) /.test(line)
        ? [`\0${line.trimStart().replace(/^\S+ /, "")}`]
        : [line.trim()];
    }),
  );
}
