import assert from "node:assert/strict";
import { documentProblems } from "../../../scripts/check_docs/document.ts";

const FILES = [
  ...["docs/a.md", "docs/eviction.md", "src/nix/hash.ts", "deploy/helm/values.yaml"],
  ...["src/http/server/open.ts", "src/storage/open.ts"],
];
const OTHERS: Readonly<Record<string, string>> = {
  "docs/eviction.md": "# Eviction\n\n## What goes, and when\n",
};

function problemsOf(text: string): readonly string[] {
  const read = (path: string) => path === "docs/a.md" ? text : OTHERS[path];
  return documentProblems({ path: "docs/a.md", text }, { files: FILES, read });
}

Deno.test("documents: a line over 100 columns is named with its number and length", () => {
  const words = `first\n\n${"word ".repeat(20)}end`;
  assert.deepEqual(problemsOf(words), ["docs/a.md:3: 103 columns, at most 100"]);
});

Deno.test("documents: a conflict that nobody settled is named with its three lines", () => {
  const marks = ["<<<<<<< main", "one", "=======", "other", ">>>>>>> branch"];
  const what = "two versions of a text, not settled";
  assert.deepEqual(problemsOf(marks.join("\n")), [1, 3, 5].map((at) => `docs/a.md:${at}: ${what}`));
});

Deno.test("documents: tables, code, headings and lone links may be longer", () => {
  const long = "x".repeat(110);
  const code = `\`\`\`\n${long} ${long}\n\`\`\``;
  assert.deepEqual(problemsOf([`| ${long} |`, code, `# ${long}`, long].join("\n")), []);
});

Deno.test("documents: the table rows of the architecture's page fit into 100 columns", () => {
  const page = { path: "docs/architecture.md", text: `| ${"x".repeat(110)} |` };
  assert.deepEqual(documentProblems(page, { files: FILES, read: () => undefined }), [
    "docs/architecture.md:1: 114 columns, at most 100",
  ]);
});

Deno.test("documents: the picture of the architecture's page has only folders and modules", () => {
  const text = "```\n| http  server/ > tls/ > server/open > nix/hush | nix |\n```\n";
  const page = { path: "docs/architecture.md", text };
  assert.deepEqual(documentProblems(page, { files: FILES, read: () => undefined }), [
    "docs/architecture.md:2: the picture has tls/, src does not",
    "docs/architecture.md:2: the picture has nix/hush, src does not",
  ]);
});

Deno.test("documents: the README has at most 120 lines", () => {
  const readme = (lines: number) => ({ path: "README.md", text: "line\n".repeat(lines) });
  const project = { files: FILES, read: () => undefined };
  assert.deepEqual(documentProblems(readme(120), project), []);
  assert.deepEqual(documentProblems(readme(121), project), ["README.md: 121 lines, at most 120"]);
});

Deno.test("documents: columns are counted in characters", () => {
  assert.deepEqual(problemsOf(`${"ü ".repeat(50)}`), []);
});

Deno.test("documents: a file is known by its path or the end of it", () => {
  assert.deepEqual(problemsOf("See `src/nix/hash.ts`, `nix/hash.ts` and `hash.ts`."), []);
  assert.deepEqual(problemsOf("\nSee `nix/hush.ts`."), [
    "docs/a.md:2: no file is called nix/hush.ts",
  ]);
});

Deno.test("documents: a path that begins in a folder of the project is there", () => {
  const good =
    "`deploy/helm/values.yaml`, `deploy/`, `http/server/`, `nix/`, `var/lib/`, `a/b.yaml`";
  assert.deepEqual(problemsOf(good), []);
  assert.deepEqual(problemsOf("`deploy/none.yaml` `nix/nowhere/` `http/serve`"), [
    "docs/a.md:1: no file is called deploy/none.yaml",
    "docs/a.md:1: no file is called nix/nowhere/",
    "docs/a.md:1: no file is called http/serve",
  ]);
});

Deno.test("documents: the end of a path leads to one file", () => {
  assert.deepEqual(problemsOf("`server/open.ts`, `storage/open.ts`, `src/storage/open.ts`"), []);
  assert.deepEqual(problemsOf("`open.ts`"), ["docs/a.md:1: 2 files are called open.ts"]);
});

Deno.test("documents: a link within the project leads to a file or a folder", () => {
  const good =
    "[a](eviction.md#eviction) [b](../src/nix/hash.ts) [c](../src) [d](https://nixos.org)";
  assert.deepEqual(problemsOf(good), []);
  assert.deepEqual(problemsOf("[a](evicted.md)"), [
    "docs/a.md:1: links to evicted.md, which is not there",
  ]);
});

Deno.test("documents: a link to a heading leads to one that is there", () => {
  const here = "## Own heading\n\n[a](#own-heading)";
  assert.deepEqual(problemsOf(`${here} [b](eviction.md#what-goes-and-when)`), []);
  assert.deepEqual(problemsOf(`${here} [b](eviction.md#what-stays) [c](#other)`), [
    "docs/a.md:3: links to eviction.md#what-stays, which is no heading",
    "docs/a.md:3: links to #other, which is no heading",
  ]);
});
