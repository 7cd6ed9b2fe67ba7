import { fieldWords } from "./field_words.ts";

/**
 * True when a client asks for HTML by name, at least as much as for JSON: a browser. Programs
 * that take anything, or say nothing, get JSON.
 */
export function prefersHtml(accept: string | null): boolean {
  const html = qualityOf("text/html", accept);
  return html > 0 && html >= qualityOf("application/json", accept);
}

/** From 0 to 1; 0 where the header does not name the type, or cannot be read. */
function qualityOf(type: string, accept: string | null): number {
  for (const range of (accept ?? "").split(",")) {
    const [name = "", ...parameters] = fieldWords(range, ";");
    if (name !== type) continue;
    const weight = parameters.find((parameter) => parameter.startsWith("q="));
    if (weight === undefined) return 1;
    return /^q=(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight.slice(2)) : 0;
  }
  return 0;
}
