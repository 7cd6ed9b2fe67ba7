import { withoutBlanks } from "./field_words.ts";

/** Whether If-None-Match names `tag`, quotes included. `W/` in front of either does not matter. */
export function isNamed(header: string | null, tag: string): boolean {
  if (header === null) return false;
  if (withoutBlanks(header) === "*") return true;
  return header.split(",").some((one) => withoutBlanks(one).replace(/^W\//, "") === tag);
}
