// Fails when prose of the project has a sentence of over 25 words, or a paraphrase of a glossary
// word. Prose is comments, documents with their tables, strings, and names of tests. The strings of
// tests are none. Fails, too, when a doc comment begins with a pronoun, or an identifier has a word
// that the glossary replaces. Run by `deno task ok`.
import { docBeginProblems } from "./check_words/doc_begin.ts";
import { identifierProblems } from "./check_words/identifiers.ts";
import { markedCommentsOf, quotedTextOf } from "./check_words/marked_comments.ts";
import { commentsOf, paragraphsOf, testNamesOf } from "./check_words/prose.ts";
import { stringsOf, trailingCommentsOf } from "./check_words/source_prose.ts";
import { tableCellsOf } from "./check_words/table_cells.ts";
import { type Prose, wordingProblems } from "./check_words/wording.ts";

/** The prose of a file, by the ending of its name. The names of shell files have none. */
const PROSE_OF: Readonly<Record<string, (text: string, path: string) => readonly Prose[]>> = {
  ".ts": proseOfCode,
  ".js": proseOfCode,
  ".md": (text) => [...paragraphsOf(text), ...tableCellsOf(text)],
  ".sql": (text) => markedCommentsOf(text, "--"),
  ".nix": proseBehindHashes,
  ".yaml": proseBehindHashes,
  ".yml": proseBehindHashes,
  ".toml": proseBehindHashes,
  ".conf": proseBehindHashes,
  ".tpl": proseBehindHashes,
  "": proseBehindHashes,
};

const FILES = ["main.ts", "flake.nix", "CHANGELOG.md", "README.md", "SECURITY.md"];
const FOLDERS = [".ci", ".github", "deploy", "docs", "nix", "scripts", "src"];

const problems = [
  ...[...FILES, ...FOLDERS].flatMap(filesAt).flatMap(problemsOf),
  ...filesAt("tests").filter((path) => path.endsWith(".ts")).flatMap(problemsOfTests),
];
for (const problem of problems) console.error(problem);
if (problems.length > 0) Deno.exit(1);

function problemsOf(path: string): readonly string[] {
  const proseOf = PROSE_OF[endingOf(path)];
  if (proseOf === undefined) return [];
  const text = Deno.readTextFileSync(path);
  const ofCode = path.endsWith(".ts")
    ? [...docBeginProblems(path, text), ...identifierProblems(path, text)]
    : [];
  return [...wordingProblems(path, proseOf(text, path)), ...ofCode];
}

/** The strings of a test are answers, requests and wrong words: only its names are prose. */
function problemsOfTests(path: string): readonly string[] {
  const text = Deno.readTextFileSync(path);
  const prose = [...testNamesOf(text), ...commentsOf(text), ...trailingCommentsOf(text, path)];
  const ofCode = [...docBeginProblems(path, text), ...identifierProblems(path, text)];
  return [...wordingProblems(path, prose), ...ofCode];
}

function proseOfCode(text: string, path: string): readonly Prose[] {
  return [...commentsOf(text), ...trailingCommentsOf(text, path), ...stringsOf(text, path)];
}

function proseBehindHashes(text: string): readonly Prose[] {
  return [...markedCommentsOf(text, "#"), ...quotedTextOf(text)];
}

function endingOf(path: string): string {
  return /\.[^./]+$/.exec(path)?.[0] ?? "";
}

function filesAt(path: string): string[] {
  if (Deno.statSync(path).isFile) return [path];
  return [...Deno.readDirSync(path)].flatMap(({ name }) => filesAt(`${path}/${name}`));
}
