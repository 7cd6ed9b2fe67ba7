import { Marked, type Tokens } from "marked";

/** A heading and the text below it, up to the next heading. */
export interface Section {
  /** Empty for the text before the first heading. */
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

/** Code of one line, without its tags. */
const CODE_REGEXP = /(?<=<code>)[^<]*(?=<\/code>)/g;

/** Renders GitHub's Markdown. Headings get the ids by which links name them. */
export function renderMarkdown(markdown: string): Rendered {
  const marked = new Marked({ gfm: true });
  const ids = idsOf(marked.lexer(markdown));
  let at = 0;
  marked.use({
    renderer: {
      heading({ depth, tokens }) {
        const id = ids[at++] ?? "";
        const anchor = `<a class="anchor" href="#${id}" aria-label="Link to this heading">#</a>`;
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}${anchor}</h${depth}>\n`;
      },
      table(token) {
        const cells = (row: readonly Tokens.TableCell[]) =>
          `<tr>${row.map((cell) => this.tablecell(cell)).join("")}</tr>\n`;
        const body = token.rows.map(cells).join("").replaceAll(CODE_REGEXP, breakable);
        return `<div class="table" tabindex="0"><table><thead>${cells(token.header)}</thead>` +
          `<tbody>${body}</tbody></table></div>\n`;
      },
    },
  });
  return { html: marked.parse(markdown, { async: false }), sections: sectionsOf(marked, markdown) };
}

/** Lets a long name in a narrow column wrap behind each of its parts. */
function breakable(code: string): string {
  return code.replaceAll(/(?<=\w)[_.|/-]+(?=\w)/g, "$&<wbr>");
}

/** The ids of all headings. The second of the same words ends in `-1`, as on GitHub. */
function idsOf(tokens: readonly { readonly type: string }[]): readonly string[] {
  const seen = new Map<string, number>();
  return tokens.filter(isHeading).map(({ text }) => {
    const slug = slugOf(plainText(text));
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  });
}

function sectionsOf(marked: Marked, markdown: string): readonly Section[] {
  const tokens = marked.lexer(markdown);
  const ids = idsOf(tokens);
  const sections: { id: string; title: string; level: number; text: string }[] = [];
  for (const token of tokens) {
    if (isHeading(token)) {
      const id = ids[sections.length] ?? "";
      sections.push({ id, title: plainText(token.text), level: token.depth, text: "" });
    } else {
      const section = sections.at(-1);
      if (section !== undefined) section.text += ` ${plainText(token.raw)}`;
    }
  }
  return sections;
}

function isHeading(token: { readonly type: string }): token is Tokens.Heading {
  return token.type === "heading";
}

/** Markdown without fences, rules of tables, and the marks of links, code, emphasis and tables. */
function plainText(markdown: string): string {
  return markdown.replaceAll(/^\s*(?:```|~~~).*$/gm, "").replaceAll(/^[\s:|-]*---[\s:|-]*$/gm, "")
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/[`*]|(?<!\\)\||\\(?=\|)|^[#>-]+/gm, "").replaceAll(/\s+/g, " ").trim();
}

/** The name by which links point to a heading, as GitHub makes it. */
export function slugOf(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}
