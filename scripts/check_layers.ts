// Fails when an import goes up or sideways, a back end is imported by a stranger, or a file or
// function has outgrown the house. Run by `deno task ok`.
import ts from "typescript";

/** Lower ranks know nothing of higher ones. Folders of one rank do not know each other. */
const RANKS: Readonly<Record<string, number>> = {
  base: 0,
  nix: 1,
  telemetry: 2,
  config: 2,
  storage: 3,
  metadata: 3,
  upstream: 3,
  locks: 3,
  closure: 4,
  pins: 5,
  lru: 5,
  cache: 6,
  http: 7,
  app: 8,
  cli: 9,
};

/** Back ends stand behind their port: `app` picks them, nobody else names them. */
const BACK_END_REGEXP =
  /^src\/(storage\/(local|s3)|metadata\/(sqlite|postgres)|locks\/(local|redis)|upstream\/http)\//;

/** Those that may read the option table. */
const CONFIG_READERS = ["config", "app", "cli"];

const FILE_LINES_MAX = { src: 350, tests: 400 };
const FUNCTION_LINES_MAX = 70;
const COLUMNS_MAX = 100;

const problems: string[] = [];

for (const path of [...filesBelow("src"), ...filesBelow("tests"), ...filesBelow("scripts")]) {
  const text = Deno.readTextFileSync(path);
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  checkSize(path, text);
  checkFunctions(path, source);
  if (path.startsWith("src/")) {
    for (const imported of importsOf(path, source)) checkImport(path, imported);
  }
}

for (const problem of problems) console.error(problem);
if (problems.length > 0) Deno.exit(1);

function checkImport(path: string, imported: string): void {
  if (!imported.startsWith("src/")) return;
  const [from, to] = [path.split("/")[1] ?? "", imported.split("/")[1] ?? ""];
  const [rank, importedRank] = [RANKS[from], RANKS[to]];
  if (rank === undefined) return void problems.push(`${path}: folder ${from} has no rank`);
  if (importedRank === undefined) {
    return void problems.push(`${path}: imports ${imported}, whose folder has no rank`);
  }
  if (from !== to && importedRank >= rank) {
    problems.push(`${path}: imports ${imported}; ${from} must not know ${to}`);
  }
  if (to === "config" && !CONFIG_READERS.includes(from)) {
    problems.push(`${path}: imports ${imported}; hand it plain values instead`);
  }
  const backEnd = BACK_END_REGEXP.exec(imported)?.[0];
  if (backEnd !== undefined && from !== "app" && !path.startsWith(backEnd)) {
    problems.push(`${path}: imports ${imported}; only src/app picks a back end`);
  }
}

function importsOf(path: string, source: ts.SourceFile): string[] {
  return ts.preProcessFile(source.text, true, true).importedFiles
    .map(({ fileName }) => fileName)
    .filter((name) => name.startsWith("."))
    .map((name) => new URL(name, `file:///${path}`).pathname.slice(1));
}

function checkSize(path: string, text: string): void {
  const lines = text.split("\n");
  const max = path.startsWith("tests/") ? FILE_LINES_MAX.tests : FILE_LINES_MAX.src;
  if (lines.length - 1 > max) problems.push(`${path}: ${lines.length - 1} lines, at most ${max}`);
  for (const [index, line] of lines.entries()) {
    if (line.length > COLUMNS_MAX) {
      problems.push(`${path}:${index + 1}: ${line.length} columns, at most ${COLUMNS_MAX}`);
    }
  }
}

function checkFunctions(path: string, node: ts.Node): void {
  if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
    const source = node.getSourceFile();
    const [start, end] = [node.getStart(), node.getEnd()]
      .map((position) => source.getLineAndCharacterOfPosition(position).line);
    const lines = (end ?? 0) - (start ?? 0) + 1;
    if (lines > FUNCTION_LINES_MAX) {
      problems.push(
        `${path}:${(start ?? 0) + 1}: a function of ${lines} lines, at most ${FUNCTION_LINES_MAX}`,
      );
    }
  }
  node.forEachChild((child) => checkFunctions(path, child));
}

function filesBelow(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    if (isDirectory) return filesBelow(path);
    return name.endsWith(".ts") ? [path] : [];
  });
}
