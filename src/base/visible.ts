/**
 * Characters that act on a terminal, or change how the text around them is read: controls (an
 * escape sequence begins with one), line and paragraph separators, those that turn the direction
 * of writing, and those that nobody sees.
 */
const UNSEEN_REGEXP = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A text with those characters as `\u001b` and the like, in one line. */
export function visible(text: string): string {
  return text.replace(UNSEEN_REGEXP, escaped);
}

/** The same of a text of several lines. */
export function visibleLines(text: string): string {
  return text.replace(UNSEEN_REGEXP, (character) => character === "\n" ? "\n" : escaped(character));
}

function escaped(character: string): string {
  const digits = character.codePointAt(0)?.toString(16).padStart(4, "0") ?? "";
  return digits.length > 4 ? `\\u{${digits}}` : `\\u${digits}`;
}
