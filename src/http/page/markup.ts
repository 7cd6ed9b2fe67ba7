/** A piece of HTML that is safe to send. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

/** A value in `markup`: text is escaped, HTML is not, and nothing stays nothing. */
export type Part = Html | string | number | undefined | null | false | readonly Part[];

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/**
 * HTML from a template. It escapes all values, so text from outside stays text. Its name is not
 * `html`, because the formatter would move white space within the template.
 */
export function markup(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  let text = strings[0] ?? "";
  for (const [index, part] of parts.entries()) text += textOf(part) + (strings[index + 1] ?? "");
  return new Html(text);
}

function textOf(part: Part): string {
  if (part === undefined || part === null || part === false) return "";
  if (part instanceof Html) return part.text;
  if (Array.isArray(part)) return part.map(textOf).join("");
  return String(part).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
