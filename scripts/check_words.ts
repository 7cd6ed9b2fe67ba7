// Fails when a comment, a document or a test name has a sentence of over 25 words, or a paraphrase
// of a glossary word. Run by `deno task ok`.
import { commentsOf, paragraphsOf, testNamesOf } from "./check_words/prose.ts";
import { wordingProblems } from "./check_words/wording.ts";

const problems = [
  ...["README.md", "docs", "scripts", "src"].flatMap(filesAt)
    .flatMap((path) => problemsOf(path, path.endsWith(".md") ? paragraphsOf : commentsOf)),
  ...filesAt("tests").filter((path) => path.endsWith(".ts"))
    .flatMap((path) => problemsOf(path, testNamesOf)),
];
for (const problem of problems) console.error(problem);
if (problems.length > 0) Deno.exit(1);

function problemsOf(path: string, proseOf: typeof commentsOf): readonly string[] {
  return wordingProblems(path, proseOf(Deno.readTextFileSync(path)));
}

function filesAt(path: string): string[] {
  if (Deno.statSync(path).isFile) return /\.(?:ts|js|md)$/.test(path) ? [path] : [];
  return [...Deno.readDirSync(path)].flatMap(({ name }) => filesAt(`${path}/${name}`));
}
