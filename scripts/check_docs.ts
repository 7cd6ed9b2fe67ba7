// Fails when a document has lines over 100 columns, names a missing file or heading, or has no place
// in the site. Fails, too, when a rule in docs/rules.md has no keeper, or a promise of the README no
// rule. Run by `deno task ok`.
import { documentProblems } from "./check_docs/document.ts";
import { promiseProblems, PROMISING_PAGES } from "./check_docs/promises.ts";
import { readRules, ruleProblems } from "./check_docs/rules.ts";
import { buildSite } from "./docs/site.ts";

const FOLDERS = ["src", "tests", "scripts", "docs", "deploy", "nix", ".ci", ".github"];

const files = [...filesIn("."), ...FOLDERS.flatMap(filesBelow)];
const documents = files.filter((path) => path.endsWith(".md"));
const { rules, problems: wrongRows } = readRules(readText("docs/rules.md"));
const problems = [
  ...documents.flatMap((path) =>
    documentProblems({ path, text: readText(path) }, { files, read: readIfThere })
  ),
  ...buildSite({ documents: files.filter((path) => path.startsWith("docs/")), readText }).problems,
  ...wrongRows,
  ...rules.flatMap((rule) => ruleProblems(rule, readIfThere)),
  ...PROMISING_PAGES.flatMap((page) => promiseProblems(page, readText(page.path), rules)),
];
for (const problem of problems) console.error(problem);
if (problems.length > 0) Deno.exit(1);

function filesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].filter(({ isFile }) => isFile).map(({ name }) => name);
}

function filesBelow(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    return isDirectory ? filesBelow(path) : [path];
  });
}

function readIfThere(path: string): string | undefined {
  return files.includes(path) ? readText(path) : undefined;
}

function readText(path: string): string {
  return Deno.readTextFileSync(path);
}
