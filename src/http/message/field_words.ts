/**
 * The words of a field's value, in lower case and without blanks. Folds ASCII letters alone:
 * `toLowerCase` makes "k" of the KELVIN SIGN, and `trim` removes more than blanks.
 */
export function fieldWords(value: string, separator: "," | ";" = ","): readonly string[] {
  return value.split(separator).map((word) => lowerAscii(withoutBlanks(word)));
}

/** A text with its ASCII letters in lower case. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The text from `from`, without spaces and tabs around it. */
export function withoutBlanks(text: string, from = 0): string {
  let start = from;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}
