/**
 * The text for a narrower terminal: a long line goes on below, with its indent and `hanging` more
 * blanks. A word that is too long stands alone.
 */
export function wrapped(text: string, columns = Infinity, hanging = 0): string {
  return text.split("\n").map((line) => {
    if (line.length <= columns) return line;
    const [own = ""] = /^ */.exec(line) ?? [];
    const indent = own + " ".repeat(hanging);
    const lines: string[] = [];
    let rest = line;
    let from = own.length;
    while (rest.length > columns) {
      const space = rest.lastIndexOf(" ", columns);
      const end = space > from ? space : rest.indexOf(" ", Math.max(columns, from));
      if (end <= from) break;
      lines.push(rest.slice(0, end).trimEnd());
      rest = indent + rest.slice(end).trimStart();
      from = indent.length;
    }
    return [...lines, rest].join("\n");
  }).join("\n");
}

/** A word of a list, and the gap in front of its explanation. */
const TERM_REGEXP = /^ *\S+(?: \S+)* {2,}(?=\S)/;

/** Explanations that begin further right go on below their word: little room is left there. */
const TERM_COLUMNS_MAX = 24;

/**
 * The text of a help for a narrower terminal. It was written with ends of lines, so the lines of a
 * paragraph, or of an explanation in a list, are joined first.
 */
export function refilled(text: string, columns = Infinity): string {
  if (columns === Infinity) return text;
  const blocks: { text: string; readonly at: number | undefined; readonly hanging: number }[] = [];
  for (const line of text.split("\n")) {
    const [{ length: indent } = ""] = /^ */.exec(line) ?? [];
    const last = blocks.at(-1);
    if (line !== "" && last?.at === indent) {
      last.text += ` ${line.trimStart()}`;
      continue;
    }
    const term = TERM_REGEXP.exec(line)?.[0].length;
    const at = term ?? (indent === 0 && line !== "" ? 0 : undefined);
    const hanging = term !== undefined && term <= TERM_COLUMNS_MAX ? term - indent : 0;
    blocks.push({ text: line, at, hanging });
  }
  return blocks.map((block) => wrapped(block.text, columns, block.hanging)).join("\n");
}
