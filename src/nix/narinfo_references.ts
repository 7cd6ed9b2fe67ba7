import { type BaseName, isBaseName } from "./store_path.ts";

const REFERENCES_REGEXP = /^References: (.*)$/m;

/** The references in a narinfo's text, of which larder has read the narinfo before. */
export function referencesInNarinfo(text: string): readonly BaseName[] {
  return (REFERENCES_REGEXP.exec(text)?.[1] ?? "").split(" ").filter(isBaseName);
}
