/** A page of the site. */
export interface SitePage {
  /** The Markdown file, from the project's folder. */
  readonly source: string;
  readonly title: string;
  /** Its name in the site. */
  readonly file: string;
}

/** Pages that belong together. */
export interface Chapter {
  readonly title: string;
  readonly pages: readonly SitePage[];
}

const CHAPTER_REGEXP = /^## (?<title>.+)$/;
const PAGE_REGEXP = /^\* \[(?<title>[^\]]+)\]\((?<target>[^)]+)\)$/;

/** The chapters that `docs/SUMMARY.md` lists. */
export function readSummary(text: string): readonly Chapter[] {
  const chapters: { title: string; pages: SitePage[] }[] = [];
  for (const line of text.split("\n")) {
    const chapter = CHAPTER_REGEXP.exec(line)?.groups?.title;
    if (chapter !== undefined) chapters.push({ title: chapter, pages: [] });
    const { title, target } = PAGE_REGEXP.exec(line)?.groups ?? {};
    if (title === undefined || target === undefined) continue;
    const source = new URL(target, "file:///docs/").pathname.slice(1);
    chapters.at(-1)?.pages.push({ source, title, file: fileOf(source) });
  }
  return chapters;
}

/** The site is one folder, so that a page's links to style and script are the same everywhere. */
function fileOf(source: string): string {
  const [name = ""] = source.slice(source.lastIndexOf("/") + 1).split(".md");
  return name === "README" ? "index.html" : `${name.toLowerCase()}.html`;
}
