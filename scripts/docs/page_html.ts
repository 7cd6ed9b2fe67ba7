import type { Section } from "./markdown.ts";
import type { Chapter, SitePage } from "./summary.ts";

/** A page of the site and its surroundings. */
export interface PageParts {
  readonly page: SitePage;
  readonly chapters: readonly Chapter[];
  readonly sections: readonly Section[];
  readonly content: string;
  readonly previous: SitePage | undefined;
  readonly next: SitePage | undefined;
}

/** Nothing from another host, and no code but the search. */
const POLICY = "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; " +
  "base-uri 'none'; form-action 'none'";

/** A page as a document. It works without scripts. */
export function pageHtml(parts: PageParts): string {
  const { page, content } = parts;
  const title = page.file === "index.html" ? "larder" : `${page.title} · larder`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>${escaped(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="site.css">
<script src="search.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="home" href="index.html">larder</a>
<a class="menu" href="#pages">All pages</a>
<search hidden><input type="search" aria-label="Search" placeholder="Search" autocomplete="off">
<ol aria-live="polite"></ol></search>
</header>
<nav class="site" id="pages" aria-label="Pages">${siteNavigation(parts)}</nav>
<main id="content">
${content}
<nav class="turn" aria-label="Previous and next page">${turnLinks(parts)}</nav>
</main>
<aside>${contents(parts.sections)}</aside>
</body>
</html>
`;
}

function siteNavigation({ chapters, page }: PageParts): string {
  const lists = chapters.map(({ title, pages }) => {
    const links = pages.map((one) => {
      const current = one === page ? ` aria-current="page"` : "";
      return `<li><a href="${one.file}"${current}>${escaped(one.title)}</a></li>`;
    });
    return `<h2>${escaped(title)}</h2><ul>${links.join("")}</ul>`;
  });
  return lists.join("");
}

function contents(sections: readonly Section[]): string {
  const shown = sections.filter(({ level }) => level === 2 || level === 3);
  if (shown.length < 2) return "";
  const links = shown.map(({ id, title, level }) =>
    `<li class="level-${level}"><a href="#${id}">${escaped(title)}</a></li>`
  );
  return `<nav aria-label="On this page"><h2>On this page</h2><ul>${links.join("")}</ul></nav>`;
}

function turnLinks({ previous, next }: PageParts): string {
  const link = (page: SitePage | undefined, rel: "prev" | "next") =>
    page === undefined
      ? "<span></span>"
      : `<a rel="${rel}" href="${page.file}">${escaped(page.title)}</a>`;
  return link(previous, "prev") + link(next, "next");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
