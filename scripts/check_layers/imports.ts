import ts from "typescript";

/**
 * Ranks of the layers. Lower ones must not import higher ones, nor folders of one rank each other.
 */
const RANKS: Readonly<Record<string, number>> = {
  runtime: 0,
  base: 1,
  nix: 2,
  telemetry: 3,
  config: 3,
  storage: 4,
  metadata: 4,
  upstream: 4,
  locks: 4,
  closure: 5,
  history: 5,
  pins: 6,
  space: 6,
  cache: 7,
  http: 8,
  app: 9,
  cli: 10,
};

/** Back ends stand behind their port: only `app` imports them. */
const BACK_END_REGEXP =
  /^src\/(storage\/(local|s3)|metadata\/(sqlite|postgres)|locks\/(local|redis)|upstream\/http)\//;

/** Layers that may read the option table. */
const CONFIG_READERS = ["config", "app", "cli"];

/** Problems with a file's imports, one line each. */
export function importProblems(source: ts.SourceFile): readonly string[] {
  const path = source.fileName;
  const imports = importsOf(source);
  if (path === "main.ts") {
    return imports.filter((imported) => !imported.startsWith("src/cli/"))
      .map((imported) => `${path}: imports ${imported}; it hands everything to src/cli`);
  }
  if (!path.startsWith("src/")) return [];
  return imports.flatMap((imported) => {
    if (imported === "main.ts") return [`${path}: imports ${imported}; nobody does`];
    return imported.startsWith("src/") ? problemsOf(path, imported) : [];
  });
}

function problemsOf(path: string, imported: string): readonly string[] {
  const [from, to] = [path.split("/")[1] ?? "", imported.split("/")[1] ?? ""];
  const [rank, importedRank] = [RANKS[from], RANKS[to]];
  if (rank === undefined) return [`${path}: folder ${from} has no rank`];
  if (importedRank === undefined) {
    return [`${path}: imports ${imported}, whose folder has no rank`];
  }
  const problems: string[] = [];
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
  return problems;
}

/** The imported files, by their paths from the project's folder. */
export function importsOf(source: ts.SourceFile): readonly string[] {
  return ts.preProcessFile(source.text, true, true).importedFiles
    .map(({ fileName }) => fileName)
    .filter((name) => name.startsWith("."))
    .map((name) => pathOf(name, source.fileName));
}

/** The path from the project's folder of a relative import. */
export function pathOf(imported: string, importer: string): string {
  return new URL(imported, `file:///${importer}`).pathname.slice(1);
}
