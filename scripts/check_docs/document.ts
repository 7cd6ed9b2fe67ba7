import { renderMarkdown } from "../docs/markdown.ts";

const COLUMNS_MAX = 100;

/** A newcomer reads this page whole. */
const README_LINES_MAX = 120;

/** A path in backticks, such as `src/nix/hash.ts`, `hash.ts` or `deploy/`. */
const NAMED_PATH_REGEXP = /`((?:[\w.-]+\/)*[\w.-]*)`/g;

/** A name with such an ending is that of a file of the project, wherever it stands. */
const OWN_FILE_REGEXP = /^[\w./-]*[\w-]\.(?:ts|sql|md|svg)$/;

/** Links within the project: a path, a heading behind `#`, or both. */
const LINK_REGEXP =
  /(?:\]\(|(?:href|src|srcset)=")(?<target>[^")#:\s]*)(?:#(?<heading>[^")\s]*))?[")]/g;

/** Documents for people who read from top to bottom: tables and pictures fit too. */
const NARROW = ["docs/architecture.md"];

/** A folder of `src` in a picture, such as `tls/`, or a module in one, such as `kept/kept_nars`. */
const DRAWN_PATH_REGEXP = /(?:\w+\/)+\w*/g;

/** What git writes around the two versions of a conflict. */
const CONFLICT_REGEXP = /^(?:<{7} |={7}$|>{7} )/;

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
  const folders = foldersOf(files);
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
    const place = `${path}:${index + 1}`;
    if (CONFLICT_REGEXP.test(line)) problems.push(`${place}: two versions of a text, not settled`);
    const isNarrow = NARROW.includes(path);
    if (isCode && !isNarrow) continue;
    const mayBeLong = UNWRAPPED_REGEXP.test(line) && !isNarrow;
    if ([...line].length > COLUMNS_MAX && !mayBeLong) {
      problems.push(`${place}: ${[...line].length} columns, at most ${COLUMNS_MAX}`);
    }
    if (isCode) {
      const unknown = [...line.matchAll(DRAWN_PATH_REGEXP)].filter(([name]) =>
        !isDrawn(name, files)
      );
      problems.push(...unknown.map(([name]) => `${place}: the picture has ${name}, src does not`));
      continue;
    }
    for (const [, name = ""] of line.matchAll(NAMED_PATH_REGEXP)) {
      const count = isOwn(name, folders) ? meantBy(name, path, { files, folders }) : 1;
      if (count === 0) problems.push(`${place}: no file is called ${name}`);
      if (count > 1) problems.push(`${place}: ${count} files are called ${name}`);
    }
    for (const { groups: { target = "", heading } = {} } of line.matchAll(LINK_REGEXP)) {
      const { pathname } = new URL(target, `file:///${path}`);
      const linked = pathname.slice(1).replace(/\/$/, "");
      const isPresent = files.some((file) => file === linked || file.startsWith(`${linked}/`));
      if (!isPresent) problems.push(`${place}: links to ${target}, which is not there`);
      else if (heading !== undefined && !headingsOf(read(linked) ?? "").has(heading)) {
        problems.push(`${place}: links to ${target}#${heading}, which is no heading`);
      }
    }
  }
  return problems;
}

function foldersOf(files: readonly string[]): ReadonlySet<string> {
  const parents = (path: string): string[] => {
    const end = path.lastIndexOf("/");
    return end < 0 ? [] : [path.slice(0, end), ...parents(path.slice(0, end))];
  };
  return new Set(files.flatMap(parents));
}

/** True for a file by its ending, and for a path that begins in a folder of the project. */
function isOwn(name: string, folders: ReadonlySet<string>): boolean {
  const [first = "", ...rest] = name.split("/");
  if (OWN_FILE_REGEXP.test(name)) return true;
  return rest.length > 0 && (folders.has(first) || folders.has(`src/${first}`));
}

/** True for a folder of `src`, or a module in one. */
function isDrawn(name: string, files: readonly string[]): boolean {
  const end = name.endsWith("/") ? name : `${name}.ts`;
  return files.some((file) => file.startsWith("src/") && `${file}/`.includes(`/${end}`));
}

/** How many files a name may mean: it is a path, or the end of one. A folder is one of its name. */
function meantBy(
  name: string,
  document: string,
  { files, folders }: { readonly files: readonly string[]; readonly folders: ReadonlySet<string> },
): number {
  const path = name.replace(/\/$/, "");
  const isMeant = (known: string) => known === path || known.endsWith(`/${path}`);
  const beside = document.slice(0, document.lastIndexOf("/") + 1) + path;
  if (files.includes(path) || files.includes(beside)) return 1;
  return [...folders].some(isMeant) ? 1 : files.filter(isMeant).length;
}

const headings = new Map<string, ReadonlySet<string>>();

/** The headings of a document, as links name them. */
function headingsOf(text: string): ReadonlySet<string> {
  const known = headings.get(text) ?? new Set(renderMarkdown(text).sections.map(({ id }) => id));
  headings.set(text, known);
  return known;
}
