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
