import type { PageSource } from "../http/page/page.ts";

const IMPORT_LINE = 'import { renderParts } from "./render.js";\n';

/** Reads the files of the page; in the executable they are embedded. */
export function readPageSource(): PageSource {
  return {
    template: read("page.html"),
    style: read("page.css"),
    // The page is one document: what its script imports stands in front of it.
    script: read("render.js") + read("page.js").replace(IMPORT_LINE, ""),
  };
}

function read(name: string): string {
  return Deno.readTextFileSync(new URL(`../http/page/${name}`, import.meta.url));
}
