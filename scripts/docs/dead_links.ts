const ID_REGEXP = /\sid="([^"]+)"/g;
const LINK_REGEXP = /<[^>]*\s(?:href|src|srcset)="(?<link>[^"]*)"/g;

/**
 * Dead links within a built site, one line each. `texts`: its files with a text. `others`: the
 * names of its other files.
 */
export function linkProblems(
  texts: ReadonlyMap<string, string>,
  others: readonly string[],
): readonly string[] {
  const pages = [...texts].filter(([file]) => file.endsWith(".html"));
  const ids = new Map(pages.map(([file, html]) => [file, idsIn(html)]));
  const isPresent = (file: string) => texts.has(file) || others.includes(file);
  return pages.flatMap(([file, html]) => {
    const links = [...html.matchAll(LINK_REGEXP)].map(({ groups }) => groups?.["link"] ?? "");
    return [...new Set(links)].filter((link) => !/^[a-z]+:/.test(link)).flatMap((link) => {
      const [path = "", id] = link.split("#");
      const target = path === "" ? file : path;
      if (!isPresent(target)) return [`${file}: links to ${link}, which is not in the site`];
      if (id === undefined || ids.get(target)?.has(decodeURIComponent(id))) return [];
      return [`${file}: links to ${link}, which is no heading`];
    });
  });
}

function idsIn(html: string): ReadonlySet<string> {
  return new Set([...html.matchAll(ID_REGEXP)].map(([, id = ""]) => id));
}
