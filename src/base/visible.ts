/**
 * Characters that control a terminal or change how text around them reads. These are controls (such
 * as escape), line and paragraph separators, direction marks and invisible characters.
 */
const UNSEEN_REGEXP = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** `text` in one line, with those characters as `\u001b` and the like. */
export function visible(text: string): string {
  return text.replace(UNSEEN_REGEXP, escaped);
}

/** The same for a text of several lines. */
export function visibleLines(text: string): string {
  return text.replace(UNSEEN_REGEXP, (character) => character === "\n" ? "\n" : escaped(character));
}

function escaped(character: string): string {
  const digits = character.codePointAt(0)?.toString(16).padStart(4, "0") ?? "";
  return digits.length > 4 ? `\\u{${digits}}` : `\\u${digits}`;
}
