import { withoutBlanks } from "./field_words.ts";

/** True when If-None-Match names `tag`, quotes included; `W/` prefixes do not matter. */
export function isNamed(header: string | null, tag: string): boolean {
  if (header === null) return false;
  if (withoutBlanks(header) === "*") return true;
  return header.split(",").some((one) => withoutBlanks(one).replace(/^W\//, "") === tag);
}
