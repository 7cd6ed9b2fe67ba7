import { renderMarkdown, type Section } from "./markdown.ts";

/** Source files of the site. */
export interface SiteSource {
  /** The files in `docs`, from the project's folder. */
  readonly documents: readonly string[];
  readonly readText: (path: string) => string;
  /** URL of the project's files; `undefined` leaves such links out. */
  readonly sourceUrl?: string | undefined;
}

export interface Site {
  /** The text of each file, by its name. */
  readonly texts: ReadonlyMap<string, string>;
  /** Files of `docs` to copy. */
  readonly copied: ReadonlySet<string>;
  /** Pages without a place in the order, or with the name of another; one line each. */
  readonly problems: readonly string[];
}

/** A page of the site. */
interface Page {
  /** The Markdown file, from the project's folder. */
  readonly source: string;
  readonly title: string;
  readonly chapter: string;
  /** Its name in the site. */
  readonly file: string;
}

const SUMMARY = "docs/SUMMARY.md";

/** The search as scripts, which pages from a folder can load. */
const COPIED_TEXTS: Readonly<Record<string, string>> = {
  "minisearch.js": "node_modules/minisearch/dist/umd/index.js",
  "find.js": "scripts/docs/find.js",
  "search.js": "scripts/docs/search.js",
  "site.css": "scripts/docs/site.css",
};

/** The files in `folder` and below, from the folder `root`, which ends with a slash. */
export function documentsIn(root: string, folder = "docs"): readonly string[] {
  return [...Deno.readDirSync(root + folder)].flatMap(({ name, isDirectory }) =>
    isDirectory ? documentsIn(root, `${folder}/${name}`) : [`${folder}/${name}`]
  );
}

/** Builds the site in memory. It is one folder, whose pages work without scripts. */
export function buildSite({ documents, readText, sourceUrl }: SiteSource): Site {
  const pages = pagesIn(readText(SUMMARY));
  const files = new Map(pages.map(({ source, file }) => [source, file]));
  const copied = new Set<string>();
  const siteLink = ({ pathname, hash }: URL): string | undefined => {
    const path = decodeURIComponent(pathname.slice(1));
    const file = files.get(path);
    if (file !== undefined) return file + hash;
    if (!/^docs\/.*\.\w+$/.test(path)) return sourceUrl && sourceUrl + path;
    copied.add(path);
    return path.slice("docs/".length);
  };
  const texts = new Map(Object.entries(COPIED_TEXTS).map(([name, path]) => [name, readText(path)]));
  const index: Record<"page" | "chapter" | "title" | "url" | "text", string>[] = [];
  for (const page of pages) {
    const { html, sections } = renderMarkdown(readText(page.source));
    texts.set(page.file, pageHtml(page, pages, withLinks(html, page.source, siteLink), sections));
    for (const { id, title, text } of sections) {
      const { title: ofPage, chapter, file } = page;
      index.push({ page: ofPage, chapter, title, url: `${file}#${id}`, text });
    }
  }
  texts.set("sections.js", `const sections = ${JSON.stringify(index)};\n`);
  const sources = new Map(pages.map(({ source, file }) => [file, source]));
  const problems = [
    ...documents.filter((path) => path.endsWith(".md") && path !== SUMMARY && !files.has(path))
      .map((path) => `${path} is not in ${SUMMARY}`),
    ...pages.filter(({ source, file }) => sources.get(file) !== source)
      .map(({ source, file }) => `${source} and ${sources.get(file)} are both ${file}`),
  ];
  return { texts, copied, problems };
}

const CHAPTER_OR_PAGE_REGEXP =
  /^## (?<chapter>.+)$|^\* \[(?<title>[^\]]+)\]\((?<target>[^)]+)\)$/gm;

/** The pages that `docs/SUMMARY.md` lists. */
function pagesIn(summary: string): readonly Page[] {
  let chapter = "";
  return [...summary.matchAll(CHAPTER_OR_PAGE_REGEXP)].flatMap(({ groups = {} }) => {
    const { title, target } = groups;
    chapter = groups["chapter"] ?? chapter;
    if (title === undefined || target === undefined) return [];
    const source = new URL(target, "file:///docs/").pathname.slice(1);
    const name = source.slice(source.lastIndexOf("/") + 1, -".md".length);
    const file = name === "README" ? "index.html" : `${name.toLowerCase()}.html`;
    return [{ source, title, chapter, file }];
  });
}

const LINK_REGEXP = /(?<=<[^>]*\s)(?<name>href|src|srcset)="(?!#|[a-z]+:)(?<link>[^"]*)"/g;

/** The HTML of a document with the links of the site. `source`: its Markdown file. */
function withLinks(html: string, source: string, siteLink: (link: URL) => string | undefined) {
  return html.replaceAll(LINK_REGEXP, (_, name: string, link: string) => {
    const found = siteLink(new URL(link, `file:///${source}`));
    return found === undefined ? "" : `${name}="${found}"`;
  });
}

/** Nothing from another host, and no code but the search. */
const POLICY = "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; " +
  "base-uri 'none'; form-action 'none'";

function pageHtml(
  page: Page,
  pages: readonly Page[],
  content: string,
  sections: readonly Section[],
): string {
  const chapters = [...Map.groupBy(pages, ({ chapter }) => chapter)].map(([title, pages]) =>
    `<h2>${title}</h2>` + listOf(pages.map((one) => (
      { url: one.file, title: one.title, attributes: one === page ? ' aria-current="page"' : "" }
    )))
  );
  const shown = sections.filter(({ level }) => level === 2 || level === 3);
  const contents = listOf(shown.map(({ id, title, level }) => (
    { url: `#${id}`, title, attributes: ` class="level-${level}"` }
  )));
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>${page.file === "index.html" ? "larder" : `${page.title} · larder`}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="site.css">
<script src="search.js" defer></script>
</head>
<body>
<header>
<a href="index.html"><b>larder</b></a>
<a class="menu" href="#pages">All pages</a>
<search hidden><input type="search" aria-label="Search" placeholder="Search" autocomplete="off">
<ol aria-live="polite"></ol></search>
</header>
<main>
${content}
</main>
<nav class="contents" aria-label="On this page">${shown.length < 2 ? "" : contents}</nav>
<nav id="pages" aria-label="Pages">${chapters.join("")}</nav>
</body>
</html>
`;
}

interface Link {
  readonly url: string;
  readonly title: string;
  /** Each with a blank before it. */
  readonly attributes: string;
}

function listOf(links: readonly Link[]): string {
  const entries = links.map(({ url, title, attributes }) =>
    `<li><a href="${url}"${attributes}>${escaped(title)}</a></li>`
  );
  return `<ul>${entries.join("")}</ul>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
