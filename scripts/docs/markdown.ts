import { Marked } from "marked";

/** A heading and the text below it, up to the next heading. */
export interface Section {
  readonly id: string;
  readonly title: string;
  readonly level: number;
  readonly text: string;
}

/** A Markdown file as HTML. */
export interface Rendered {
  readonly html: string;
  readonly sections: readonly Section[];
}

/** Renders GitHub's Markdown. Headings get the ids by which links name them. */
export function renderMarkdown(markdown: string): Rendered {
  const sections: Omit<Section, "text">[] = [];
  const marked = new Marked({ gfm: true });
  marked.use({
    renderer: {
      heading({ depth, tokens }) {
        const words = this.parser.parseInline(tokens);
        const title = plainText(words);
        const slug = slugOf(title);
        // The second of the same words ends in `-1`, as on GitHub.
        const count = sections.filter((section) => slugOf(section.title) === slug).length;
        const id = count === 0 ? slug : `${slug}-${count}`;
        sections.push({ id, title, level: depth });
        return `<h${depth} id="${id}">${words}</h${depth}>\n`;
      },
    },
  });
  const html = marked.parse(markdown, { async: false });
  const [, ...texts] = html.split(/<h[1-6] .*?<\/h[1-6]>/s);
  return {
    html,
    sections: sections.map((section, at) => ({ ...section, text: plainText(texts[at] ?? "") })),
  };
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&amp;": "&",
};

/** The words of HTML that marked wrote. Words of two cells or lines stay apart. */
function plainText(html: string): string {
  return html.replaceAll(/<\/?(?:code|em|strong|a)\b[^>]*>/g, "").replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/&[#\w]+;/g, (entity) => ENTITIES[entity] ?? entity)
    .replaceAll(/\s+/g, " ").trim();
}

/** The name by which links point to a heading, as GitHub makes it. */
export function slugOf(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}
