// Fails when imports break the layers: they must not go up or sideways, nor in a cycle through rooms
// of a layer. Only `app` may import a back end. Time and chance come from `src/runtime/`. Nothing
// is exported for tests alone, and no name twice. Run by `deno task ok`.
import ts from "typescript";
import { ambientProblems } from "./check_layers/ambient.ts";
import { deadExports, twinExports } from "./check_layers/exports.ts";
import { importProblems } from "./check_layers/imports.ts";
import { roomProblems } from "./check_layers/rooms.ts";

const paths = ["main.ts", ...["src", "tests", "scripts"].flatMap(filesBelow)];
const sources = paths.map((path) =>
  ts.createSourceFile(path, Deno.readTextFileSync(path), ts.ScriptTarget.Latest, true)
);
const problems = [
  ...sources.flatMap(importProblems),
  ...sources.flatMap(ambientProblems),
  ...roomProblems(sources),
  ...deadExports(sources),
  ...twinExports(sources),
];
for (const problem of problems) console.error(problem);
if (problems.length > 0) Deno.exit(1);

function filesBelow(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    if (isDirectory) return filesBelow(path);
    return name.endsWith(".ts") ? [path] : [];
  });
}
