import type { PageSource } from "../http/page/page.ts";

const IMPORT_LINE = 'import { renderParts } from "./render.js";\n';

/** Reads the files of the page; the executable embeds them. */
export function readPageSource(): PageSource {
  return {
    template: read("page.html"),
    style: read("page.css"),
    // The page is one document, so its script includes the imported one.
    script: read("render.js") + read("page.js").replace(IMPORT_LINE, ""),
  };
}

function read(name: string): string {
  return Deno.readTextFileSync(new URL(`../http/page/${name}`, import.meta.url));
}
