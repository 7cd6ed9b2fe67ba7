import type { Prose } from "./wording.ts";

/** Joins lines up to an empty one, or to one that begins with NUL. */
export function paragraphs(lines: readonly string[]): readonly Prose[] {
  const found: Prose[] = [];
  let from = 0;
  for (let at = 0; at <= lines.length; at++) {
    const line = lines[at] ?? "";
    if (line !== "" && !line.startsWith("\0")) continue;
    const text = lines.slice(from, at).join(" ").replaceAll("\0", "").trim();
    if (text !== "") found.push({ line: from + 1, text });
    from = line === "" ? at + 1 : at;
  }
  return found;
}
