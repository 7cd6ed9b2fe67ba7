import { paragraphs } from "./paragraphs.ts";
import { proseOfString } from "./prose_string.ts";
import type { Prose } from "./wording.ts";

/** The mark before a comment: of SQL, or of shell, Nix and YAML. */
export type CommentMark = "--" | "#";

/** The comments behind a mark: those with lines of their own, by paragraph, and trailing ones. */
export function markedCommentsOf(source: string, mark: CommentMark): readonly Prose[] {
  const own = new RegExp(`^\\s*${mark} ?(?!!)(.*?)\\s*$`);
  const lines = source.split("\n");
  return [
    // An indented line of a comment is an example.
    ...paragraphs(lines.map((line) => own.exec(line)?.[1]?.replace(/^ .*/, "") ?? "")),
    ...lines.flatMap((line, index) => {
      const text = own.test(line) ? undefined : trailingComment(line, mark);
      return text === undefined ? [] : [{ line: index + 1, text }];
    }),
  ];
}

/** The prose in double quotes on one line, with "Code" for values, such as an alert's summary. */
export function quotedTextOf(source: string): readonly Prose[] {
  return source.split("\n").flatMap((line, index) => (
    [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].flatMap(([, text = ""]) => (
      proseOfString(plainOf(text), index + 1)
    ))
  ));
}

/** A quoted text with "Code" for values. A paragraph ends at an escaped line end. */
function plainOf(quoted: string): string {
  return quoted.replaceAll("\\n", "\n")
    .replace(/\{\{.*?\}\}|\$\{.*?\}|\$\(.*?\)|\$\w+/g, "Code");
}

/** The text behind the first mark that stands outside of quotes. */
function trailingComment(line: string, mark: CommentMark): string | undefined {
  const outside = line.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, (quoted) => "_".repeat(quoted.length));
  const at = outside.search(new RegExp(`\\s${mark}\\s`));
  return at === -1 ? undefined : line.slice(at + 1 + mark.length).trim();
}
