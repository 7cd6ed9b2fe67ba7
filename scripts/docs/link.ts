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
