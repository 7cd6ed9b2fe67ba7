import type { Prose } from "./wording.ts";

/** A bar between two cells. `\|` is a character of a cell. */
const BAR_REGEXP = /(?<!\\)\|/;

/** A test's path and its name, which the check of test names reads where it stands. */
const TEST_REGEXP = /^`[^`]+_test\.ts`: /;

/** The cells of the tables of a Markdown file, without code blocks. */
export function tableCellsOf(document: string): readonly Prose[] {
  let isCode = false;
  return document.split("\n").flatMap((line, index) => {
    if (line.trimStart().startsWith("```")) isCode = !isCode;
    if (isCode || !line.trimStart().startsWith("|")) return [];
    return line.split(BAR_REGEXP).map((cell) => cell.trim())
      .filter((cell) => /\w/.test(cell) && !TEST_REGEXP.test(cell))
      .map((text) => ({ line: index + 1, text }));
  });
}
