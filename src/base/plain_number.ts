/**
 * A whole number of plain digits, as in a query, a form or a header. `undefined` for any other
 * text: `Number` also takes `0x10`, `1e3`, blanks and nothing at all.
 */
export function wholeNumber(text: string | null | undefined): number | undefined {
  if (!/^[0-9]{1,16}$/.test(text ?? "")) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** The same, with a fraction of plain digits if there is one, such as `1.5`. */
export function decimalNumber(text: string | null | undefined): number | undefined {
  return /^[0-9]{1,16}(?:\.[0-9]{1,16})?$/.test(text ?? "") ? Number(text) : undefined;
}
