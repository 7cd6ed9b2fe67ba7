import { slugOf } from "../docs/heading_slug.ts";

const COLUMNS_MAX = 100;

/** A newcomer reads this page whole. */
const README_LINES_MAX = 120;

/** Files of the project in backticks, such as `src/nix/hash.ts` or `nix/hash.ts`. */
const NAMED_FILE_REGEXP = /`((?:[\w.-]+\/)*[\w-]+\.(?:ts|sql|md|svg))`/g;

/** Links within the project: a path, a heading behind `#`, or both. */
const LINK_REGEXP = /\]\((?<target>[^)#:\s]*)(?:#(?<heading>[^)\s]*))?\)/g;

/** Documents for people who read from top to bottom: their table rows fit too. */
const NARROW = ["docs/architecture.md"];

/** Lines that cannot be wrapped: table rows, headings, HTML and single links. */
const UNWRAPPED_REGEXP = /^\s*([|#<!]|\S+$)/;

/** A Markdown file and the project around it. */
export interface Document {
  /** Path from the project's folder. */
  readonly path: string;
  readonly text: string;
}

/** The project around a document. */
export interface Project {
  /** All paths. */
  readonly files: readonly string[];
  /** The text of a document; `undefined` for a path without one. */
  readonly read: (path: string) => string | undefined;
}

/** Problems with a document, one line each. */
export function documentProblems(
  { path, text }: Document,
  { files, read }: Project,
): readonly string[] {
  const problems: string[] = [];
  const lines = text.trimEnd().split("\n");
  if (path === "README.md" && lines.length > README_LINES_MAX) {
    problems.push(`${path}: ${lines.length} lines, at most ${README_LINES_MAX}`);
  }
  let isCode = false;
  for (const [index, line] of lines.entries()) {
    if (line.trimStart().startsWith("```")) {
      isCode = !isCode;
      continue;
    }
    if (isCode) continue;
    const place = `${path}:${index + 1}`;
    const mayBeLong = UNWRAPPED_REGEXP.test(line) && !NARROW.includes(path);
    if ([...line].length > COLUMNS_MAX && !mayBeLong) {
      problems.push(`${place}: ${[...line].length} columns, at most ${COLUMNS_MAX}`);
    }
    for (const [, name = ""] of line.matchAll(NAMED_FILE_REGEXP)) {
      if (!isNamed(name, files)) problems.push(`${place}: no file is called ${name}`);
    }
    for (const { groups: { target = "", heading } = {} } of line.matchAll(LINK_REGEXP)) {
      const { pathname } = new URL(target, `file:///${path}`);
      const linked = pathname.slice(1).replace(/\/$/, "");
      const isThere = files.some((file) => file === linked || file.startsWith(`${linked}/`));
      if (!isThere) problems.push(`${place}: links to ${target}, which is not there`);
      else if (heading !== undefined && !headingsOf(read(linked) ?? "").has(heading)) {
        problems.push(`${place}: links to ${target}#${heading}, which is no heading`);
      }
    }
  }
  return problems;
}

/** True for a file's path, or its end. */
function isNamed(name: string, files: readonly string[]): boolean {
  return files.some((file) => file === name || file.endsWith(`/${name}`));
}

/** The headings of a document, as links name them. */
function headingsOf(text: string): ReadonlySet<string> {
  const headings = text.matchAll(/^#+ (.*)$/gm);
  return new Set([...headings].map(([, words = ""]) => slugOf(words)));
}
