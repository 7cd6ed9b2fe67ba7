/**
 * The document with `text` between its marks `<!-- NAME:begin -->` and `<!-- NAME:end -->`. Throws
 * if they are missing.
 */
export function withGenerated(document: string, name: string, text: string): string {
  const [beginMark, endMark] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const begin = document.indexOf(beginMark);
  const end = document.indexOf(endMark);
  if (begin < 0 || end < begin) throw new Error(`Cannot find ${beginMark} and ${endMark}`);
  return `${document.slice(0, begin + beginMark.length)}\n\n${text}\n${document.slice(end)}`;
}
