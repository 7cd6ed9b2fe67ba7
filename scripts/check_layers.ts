// Fails when an import goes up or sideways, a back end is imported by a stranger, or a file, a
// function, a class or a port has outgrown the house. Run by `deno task ok`.
import ts from "typescript";
import { importProblems } from "./check_layers/imports.ts";
import { limitProblems } from "./check_layers/limits.ts";

const paths = ["main.ts", ...["src", "tests", "scripts"].flatMap(filesBelow)];
const problems = paths.flatMap((path) => {
  const text = Deno.readTextFileSync(path);
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  return [...limitProblems(source), ...importProblems(source)];
});
for (const problem of problems) console.error(problem);
if (problems.length > 0) Deno.exit(1);

function filesBelow(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    if (isDirectory) return filesBelow(path);
    return name.endsWith(".ts") ? [path] : [];
  });
}
