import { linkProblems, withSiteLinks } from "./links.ts";
import { renderMarkdown, type Section } from "./markdown.ts";
import { pageHtml } from "./page_html.ts";
import { type Chapter, readSummary, type SitePage } from "./summary.ts";

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
  /** Pages without a place in the order, and dead links; one line each. */
  readonly problems: readonly string[];
}

const SUMMARY = "docs/SUMMARY.md";
const FOLDER = "scripts/docs";
/** The library as a script of its own, which pages from a folder can load. */
const MINISEARCH = "node_modules/minisearch/dist/umd/index.js";

/** The files in `folder` and below, from the folder `root`, which ends with a slash. */
export function documentsIn(root: string, folder = "docs"): readonly string[] {
  return [...Deno.readDirSync(root + folder)].flatMap(({ name, isDirectory }) =>
    isDirectory ? documentsIn(root, `${folder}/${name}`) : [`${folder}/${name}`]
  );
}

/** Builds the site in memory. */
export function buildSite({ documents, readText, sourceUrl }: SiteSource): Site {
  const chapters = readSummary(readText(SUMMARY));
  const pages = chapters.flatMap((chapter) => chapter.pages);
  const copied = new Set<string>();
  const targets = {
    pages: new Map(pages.map(({ source, file }) => [source, file])),
    sourceUrl,
    useFile: (path: string) => void copied.add(path),
  };
  const texts = new Map<string, string>();
  const index: SearchEntry[] = [];
  for (const [at, page] of pages.entries()) {
    const { html, sections } = renderMarkdown(readText(page.source));
    const content = withSiteLinks(html, page.source, targets);
    const around = { previous: pages[at - 1], next: pages[at + 1] };
    texts.set(page.file, pageHtml({ page, chapters, sections, content, ...around }));
    const chapter = chapters.find(({ pages }) => pages.includes(page))?.title ?? "";
    index.push(...searchEntries({ page: page.title, chapter }, page.file, sections));
  }
  texts.set("sections.js", `const sections = ${JSON.stringify(index)};\n`);
  texts.set("minisearch.js", readText(MINISEARCH));
  for (const name of ["find.js", "search.js"]) texts.set(name, readText(`${FOLDER}/${name}`));
  const style = siteStyle(readText("src/http/page/page.css"), readText(`${FOLDER}/site.css`));
  texts.set("site.css", style.text);
  const problems = [
    ...unlisted(documents, chapters),
    ...sameNames(pages),
    ...style.problems,
    ...linkProblems(texts, [...copied].map((path) => path.slice("docs/".length))),
  ];
  return { texts, copied, problems };
}

interface SearchEntry {
  readonly page: string;
  readonly chapter: string;
  readonly title: string;
  readonly url: string;
  readonly text: string;
}

function searchEntries(
  place: Pick<SearchEntry, "page" | "chapter">,
  file: string,
  sections: readonly Section[],
): SearchEntry[] {
  return sections.map(({ id, title, text }) => ({ ...place, title, url: `${file}#${id}`, text }));
}

function unlisted(documents: readonly string[], chapters: readonly Chapter[]): readonly string[] {
  const listed = new Set(chapters.flatMap(({ pages }) => pages.map(({ source }) => source)));
  return documents.filter((path) => path.endsWith(".md") && path !== SUMMARY && !listed.has(path))
    .map((path) => `${path} is not in ${SUMMARY}`);
}

/** The site is one folder, so that pages of different folders can want one name. */
function sameNames(pages: readonly SitePage[]): readonly string[] {
  const sources = new Map(pages.map(({ source, file }) => [file, source]));
  return pages.filter(({ source, file }) => sources.get(file) !== source)
    .map(({ source, file }) => `${source} and ${sources.get(file)} are both ${file}`);
}

/** Blocks of variables: colours and measures, light and dark. */
const ROOT_REGEXP = /(?:@media[^{]*\{\s*)?:root(?:\[[^\]]*\])?\s*\{[^}]*\}(?:\s*\})?/g;

/** The site's style: the variables of the status page, and the rules of the site. */
function siteStyle(
  statusPage: string,
  site: string,
): { readonly text: string; readonly problems: readonly string[] } {
  const text = `${(statusPage.match(ROOT_REGEXP) ?? []).join("\n\n")}\n\n${site}`;
  const set = new Set([...text.matchAll(/(--[\w-]+)\s*:/g)].map(([, name]) => name));
  const used = [...new Set([...site.matchAll(/var\((--[\w-]+)\)/g)].map(([, name = ""]) => name))];
  const problems = used.filter((name) => !set.has(name))
    .map((name) => `scripts/docs/site.css: src/http/page/page.css has no ${name} any more`);
  return { text, problems };
}
