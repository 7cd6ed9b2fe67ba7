// Fails when a comment or a document has a sentence of over 25 words, or a paraphrase of a word in
// the glossary. Run by `deno task ok`.
import { commentsOf, paragraphsOf } from "./check_words/prose.ts";
import { wordingProblems } from "./check_words/wording.ts";

/** Files and folders in plain words. The list only grows. */
const PLAIN = [
  ...["README.md", "docs", "scripts", "src/app", "src/base", "src/cli", "src/closure"],
  ...["src/config", "src/http", "src/metadata", "src/nix", "src/pins", "src/space"],
  ...["src/telemetry", "src/upstream", "src/cache/documents", "src/cache/download"],
  ...["src/cache/fetch", "src/cache/nar", "src/cache/pass_through", "src/cache/sources"],
  ...["src/cache/verify"],
];

const problems = PLAIN.flatMap(filesAt).flatMap((path) => {
  const text = Deno.readTextFileSync(path);
  return wordingProblems(path, path.endsWith(".md") ? paragraphsOf(text) : commentsOf(text));
});
for (const problem of problems) console.error(problem);
if (problems.length > 0) Deno.exit(1);

function filesAt(path: string): string[] {
  if (Deno.statSync(path).isFile) return /\.(?:ts|js|md)$/.test(path) ? [path] : [];
  return [...Deno.readDirSync(path)].flatMap(({ name }) => filesAt(`${path}/${name}`));
}
