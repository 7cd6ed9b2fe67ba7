import { fieldWords } from "./field_words.ts";

/**
 * True when the client prefers HTML to JSON by name, as browsers do. Programs that accept anything
 * do not.
 */
export function prefersHtml(accept: string | null): boolean {
  const html = qualityOf("text/html", accept);
  return html > 0 && html >= qualityOf("application/json", accept);
}

/** The type's quality from 0 to 1; 0 if the header is missing, malformed or does not name it. */
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
