/** Targets of the links in a document. */
export interface LinkTargets {
  /** The name in the site of each page, by its Markdown file. */
  readonly pages: ReadonlyMap<string, string>;
  /** URL of the project's files, such as `https://host/owner/name/blob/main/`. */
  readonly sourceUrl: string | undefined;
  /** Called with each file of `docs` that a page shows or offers. */
  readonly useFile: (path: string) => void;
}

const ATTRIBUTE_REGEXP = /(?<=<[^>]*\s)(?<name>href|src|srcset)="(?<link>[^"]*)"/g;

const SCHEME_REGEXP = /^(?:[a-z]+:|#)/;

/** The HTML of a document with the links of the site. `source`: its Markdown file. */
export function withSiteLinks(html: string, source: string, targets: LinkTargets): string {
  return html.replaceAll(ATTRIBUTE_REGEXP, (whole: string, name: string, link: string) => {
    if (SCHEME_REGEXP.test(link)) return whole;
    const found = siteLink(new URL(link, `file:///${source}`), targets);
    return found === undefined ? "" : `${name}="${found}"`;
  });
}

/** `undefined` for a file of the project that the site cannot link to. */
function siteLink({ pathname, hash }: URL, targets: LinkTargets): string | undefined {
  const path = decodeURIComponent(pathname.slice(1));
  const page = targets.pages.get(path);
  if (page !== undefined) return page + hash;
  if (path.startsWith("docs/") && /\.\w+$/.test(path)) {
    targets.useFile(path);
    return path.slice("docs/".length);
  }
  return targets.sourceUrl === undefined ? undefined : targets.sourceUrl + path;
}

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
