import type { Kind } from "./option.ts";

/** Any number of items, separated by commas or white space in one text. */
export function listOf<T>(item: Kind<T>): Kind<readonly T[]> {
  return {
    placeholder: item.placeholder,
    item,
    parse: (text) => splitList(text).map((part) => item.parse(part)),
    print: (values) => values.map((value) => item.print(value)).join(","),
  };
}

/** The items in a text, by the list's own separators. */
export function textsIn(list: Pick<Kind<unknown>, "split">, text: string): readonly string[] {
  return list.split?.(text) ?? splitList(text);
}

/** The items of a list's text form. */
function splitList(text: string): readonly string[] {
  return text.split(/[,\s]+/).filter((part) => part !== "");
}
