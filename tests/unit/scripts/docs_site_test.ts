import assert from "node:assert/strict";
import { buildSite, type Site } from "../../../scripts/docs/site.ts";

const ROOT = new URL("../../..", import.meta.url).pathname;

const SUMMARY = "## Start\n\n* [larder](../README.md)\n* [Clients](clients.md)\n";

const TEXTS: Readonly<Record<string, string>> = {
  "docs/SUMMARY.md": SUMMARY,
  "README.md": "# larder\n\nFor [clients](docs/clients.md#the-key-and-more).\n",
  "docs/clients.md": "# Clients\n\n## The key, and more\n\n![A page](page.png)\n",
  "scripts/docs/search.js": "",
  "scripts/docs/site.css": "a { color: var(--ink) }",
  "src/http/page/page.css": ":root { --ink: #000 }",
};

function siteWith(changed: Readonly<Record<string, string>>, sourceUrl?: string): Site {
  const texts = { ...TEXTS, ...changed };
  return buildSite({
    documents: Object.keys(texts).filter((path) => path.startsWith("docs/")),
    readText: (path) => texts[path] ?? "",
    sourceUrl,
  });
}

function pageOf(site: Site, file: string): string {
  return site.texts.get(file) ?? "";
}

Deno.test("docs site: that of this repository has a place for each page, and no dead link", () => {
  const names = [...Deno.readDirSync(`${ROOT}docs`)].map(({ name }) => `docs/${name}`);
  const readText = (path: string) => Deno.readTextFileSync(ROOT + path);
  assert.deepEqual(buildSite({ documents: names, readText }).problems, []);
});

Deno.test("docs site: a link to a heading of another page works, and pictures come too", () => {
  const site = siteWith({});
  assert.deepEqual(site.problems, []);
  assert.match(pageOf(site, "index.html"), /<a href="clients\.html#the-key-and-more">clients<\/a>/);
  assert.match(pageOf(site, "clients.html"), /<h2 id="the-key-and-more">The key, and more/);
  assert.match(pageOf(site, "clients.html"), /<img src="page\.png"/);
  assert.deepEqual([...site.copied], ["docs/page.png"]);
});

Deno.test("docs site: a link to a source file leads to the repository, or nowhere", () => {
  const text = { "docs/clients.md": "# Clients\n\n[code](../src/nix/hash.ts)\n" };
  const readme = { "README.md": "# larder\n" };
  const url = "https://git.example/o/larder/blob/main/";
  const there = pageOf(siteWith({ ...text, ...readme }, url), "clients.html");
  assert.ok(there.includes(`<a href="${url}src/nix/hash.ts">code</a>`));
  const alone = siteWith({ ...text, ...readme });
  assert.deepEqual(alone.problems, []);
  assert.match(pageOf(alone, "clients.html"), /<a >code<\/a>/);
});

Deno.test("docs site: a page without a place, a dead link and a lost colour are named", () => {
  const changed = {
    "docs/new.md": "# New\n",
    "docs/clients.md": "# Clients\n\n[gone](#gone)\n",
    "scripts/docs/site.css": "a { color: var(--accent) }",
  };
  assert.deepEqual(siteWith(changed).problems, [
    "docs/new.md is not in docs/SUMMARY.md",
    "scripts/docs/site.css: src/http/page/page.css has no --accent any more",
    "index.html: links to clients.html#the-key-and-more, which is no heading",
    "clients.html: links to #gone, which is no heading",
  ]);
});

Deno.test("docs site: two headings of the same words have two ids", () => {
  const site = siteWith({ "docs/clients.md": "# Clients\n\n## The key, and more\n\n## Clients\n" });
  assert.match(pageOf(site, "clients.html"), /<h2 id="clients-1">/);
});
