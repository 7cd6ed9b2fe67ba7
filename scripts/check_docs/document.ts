const COLUMNS_MAX = 100;

/** Files of the project in backticks, such as `src/nix/hash.ts` or `nix/hash.ts`. */
const NAMED_FILE_REGEXP = /`((?:[\w.-]+\/)*[\w-]+\.(?:ts|sql|md|svg))`/g;

/** Targets of links within the project, without the heading in them. */
const LINK_REGEXP = /\]\(([^)#:\s]+)(?:#[^)]*)?\)/g;

/** Lines that cannot be wrapped: table rows, headings, HTML and single links. */
const UNWRAPPED_REGEXP = /^\s*([|#<!]|\S+$)/;

/** A Markdown file and the project around it. */
export interface Document {
  /** From the project's folder. */
  readonly path: string;
  readonly text: string;
}

/** Problems with a document, one line each. `files`: all paths of the project. */
export function documentProblems(
  { path, text }: Document,
  files: readonly string[],
): readonly string[] {
  const problems: string[] = [];
  let isCode = false;
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trimStart().startsWith("```")) {
      isCode = !isCode;
      continue;
    }
    if (isCode) continue;
    const place = `${path}:${index + 1}`;
    if ([...line].length > COLUMNS_MAX && !UNWRAPPED_REGEXP.test(line)) {
      problems.push(`${place}: ${[...line].length} columns, at most ${COLUMNS_MAX}`);
    }
    for (const [, name = ""] of line.matchAll(NAMED_FILE_REGEXP)) {
      if (!isNamed(name, files)) problems.push(`${place}: no file is called ${name}`);
    }
    for (const [, target = ""] of line.matchAll(LINK_REGEXP)) {
      const { pathname } = new URL(target, `file:///${path}`);
      const linked = pathname.slice(1).replace(/\/$/, "");
      const isThere = files.some((file) => file === linked || file.startsWith(`${linked}/`));
      if (!isThere) problems.push(`${place}: links to ${target}, which is not there`);
    }
  }
  return problems;
}

/** True for a file's path, or its end. */
function isNamed(name: string, files: readonly string[]): boolean {
  return files.some((file) => file === name || file.endsWith(`/${name}`));
}
