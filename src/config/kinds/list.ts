import type { Kind } from "./option.ts";

/** Any number of items. As one text they are separated by commas or white space. */
export function listOf<T>(item: Kind<T>): Kind<readonly T[]> {
  return {
    placeholder: item.placeholder,
    item,
    parse: (text) => splitList(text).map((part) => item.parse(part)),
    print: (values) => values.map((value) => item.print(value)).join(","),
  };
}

/** The items of a list's text form. */
export function splitList(text: string): readonly string[] {
  return text.split(/[,\s]+/).filter((part) => part !== "");
}
