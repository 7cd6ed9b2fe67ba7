import type { PageSource } from "../http/page/page.ts";

/** Reads the files of the page; the executable embeds them. */
export function readPageSource(): PageSource {
  return {
    template: read("page.html"),
    style: read("page.css"),
    script: read("page.js"),
  };
}

function read(name: string): string {
  return Deno.readTextFileSync(new URL(`../http/page/${name}`, import.meta.url));
}
