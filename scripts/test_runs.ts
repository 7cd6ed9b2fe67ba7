import { pathToFileURL } from "node:url";

/** Files whose tests wait for minutes in all, and compute little. They begin first. */
const WAITING: readonly string[] = [
  "tests/e2e/paused_holder_test.ts",
  "tests/e2e/doc_commands_test.ts",
  "tests/e2e/locks_test.ts",
];

/** The least files of a process, which loads all of larder. */
const PART_FILES_MIN = 12;
const PARTS_MAX = 8;

/** The most files of one module. */
const MODULE_FILES_MAX = 60;

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly ignored: number;
}

/** Outcome of one `deno test`. */
export interface TestRun {
  readonly code: number;
  /** `undefined` without a summary. */
  readonly counts: TestCounts | undefined;
}

/** The files of tests at these paths, each once, without a dot in front. */
export function testFilesAt(paths: readonly string[]): readonly string[] {
  const files = paths.flatMap((path) => filesBelow(path.replace(/^\.\/|\/$/g, "")));
  return [...new Set(files)].sort();
}

function filesBelow(path: string): readonly string[] {
  if (!Deno.statSync(path).isDirectory) return [path];
  return [...Deno.readDirSync(path)].flatMap(({ name, isDirectory }) => (
    isDirectory || name.endsWith("_test.ts") ? filesBelow(`${path}/${name}`) : []
  ));
}

/** Deals files of tests to processes, of which `jobs` run at once. */
export function partsOf(files: readonly string[], jobs: number): readonly (readonly string[])[] {
  if (jobs === 1) return [files];
  const first = WAITING.filter((file) => files.includes(file));
  const others = files.filter((file) => !first.includes(file));
  const count = Math.min(PARTS_MAX, Math.max(1, Math.floor(others.length / PART_FILES_MIN)));
  // Neighbours take a similar time, so no part gets them all.
  const parts = Array.from({ length: count }, (_, part) => (
    others.filter((_, at) => at % count === part)
  ));
  return [first, ...parts].filter(({ length }) => length > 0);
}

/**
 * The files that `deno test` gets in place of these. Loading all of larder takes as long as the
 * tests of a file, and each module of `deno test` loads it anew. So a module in `folder` imports
 * many files, one after the other. Nothing of a test may stay when it ends.
 */
export function sharedModules(files: readonly string[], folder: string): readonly string[] {
  const count = Math.ceil(files.length / MODULE_FILES_MAX);
  if (files.length <= count) return files;
  return Array.from({ length: count }, (_, module) => {
    const path = `${folder}/${module}_test.ts`;
    Deno.mkdirSync(folder, { recursive: true });
    Deno.writeTextFileSync(
      path,
      files.filter((_, at) => at % count === module).map(importOf).join("\n"),
    );
    return path;
  });
}

/** In front of the tests of a file is one that never runs, named after the file. */
const MARK = "from ./";

/** Code that registers the tests of a file, of which one fails if the file cannot be loaded. */
function importOf(file: string): string {
  const url = pathToFileURL(Deno.realPathSync(file)).href;
  return `Deno.test.ignore(${JSON.stringify(MARK + file)}, () => {});
await import(${JSON.stringify(url)}).catch((error) => (
  Deno.test(${JSON.stringify(`./${file} loads`)}, () => { throw error; })
));`;
}

/** Shows the output of modules with many files as if each file were one. */
export class SharedOutput {
  readonly #modules: string;
  #marks = 0;

  /** `folder` is that of the modules. */
  constructor(folder: string) {
    // Deno prints its path from the working directory.
    this.#modules = `/${folder.split("/").slice(-2).join("/")}/`;
  }

  /** What to print in place of a line without colours; `undefined`: nothing. */
  shown(line: string): string | undefined {
    if (line.startsWith("running ") && line.includes(this.#modules)) return undefined;
    const file = MARK_REGEXP.exec(line)?.[1];
    if (file === undefined) return SUMMARY_REGEXP.test(line) ? this.#unmarked(line) : line;
    this.#marks++;
    return `running tests from ./${file}`;
  }

  #unmarked(line: string): string {
    return line.replace(/ \| (\d+) ignored/, (_, ignored) => {
      const others = Number(ignored) - this.#marks;
      return others === 0 ? "" : ` | ${others} ignored`;
    });
  }
}

const MARK_REGEXP = new RegExp(`^${MARK}(.*) \\.\\.\\. ignored \\(.*\\)$`);
const SUMMARY_REGEXP = /(\d+) passed.*\| (\d+) failed(?:.*?(\d+) ignored)?/;

/** The counts of `deno test`, if this is its last line. */
export function countsIn(line: string): TestCounts | undefined {
  const found = SUMMARY_REGEXP.exec(line);
  if (found === null) return undefined;
  const [passed = 0, failed = 0, ignored = 0] = found.slice(1).map((word) => Number(word ?? 0));
  return { passed, failed, ignored };
}

/** A test of a run, by its file and its name without the reason why it was skipped. */
export interface SkippedTest {
  readonly file: string;
  readonly name: string;
}

const FILE_REGEXP = /^running (?:\d+ )?tests? from (?:\.\/)?(.*)$/;
const SKIPPED_REGEXP = /^(.*) \(skipped: .*\.\.\. ignored/;

/** The tests that the run with this log skipped. */
export function skippedIn(log: string): readonly SkippedTest[] {
  let file = "";
  return log.split("\n").flatMap((line) => {
    file = FILE_REGEXP.exec(line)?.[1] ?? file;
    const name = SKIPPED_REGEXP.exec(line)?.[1];
    return name === undefined ? [] : [{ file, name }];
  });
}

/** An argument of `deno test` for the tests that are skipped, and the marks between files. */
export const LIST_FILTER = `--filter=/^${MARK}| \\(skipped: /`;

/** Arguments of `deno test` for those of these tests that are in these files. */
export function wordsFor(all: readonly SkippedTest[], among: readonly string[]): readonly string[] {
  const tests = all.filter(({ file }) => among.includes(file));
  if (tests.length === 0) throw new Error("The run with this log skipped no test of these files");
  const names = tests.map(({ name }) => name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  const files = new Set(tests.map(({ file }) => file));
  // The marks between files. Here a test may be skipped, too.
  return [`--filter=/^(?:${MARK}.*|(?:${names.join("|")})(?: \\(skipped: .*)?)$/`, ...files];
}

/** One result of several runs. A run without counts leaves the whole without. */
export function joined(runs: readonly TestRun[]): TestRun {
  return runs.reduce((one, other) => ({
    code: one.code === 0 ? other.code : one.code,
    counts: one.counts && other.counts && {
      passed: one.counts.passed + other.counts.passed,
      failed: one.counts.failed + other.counts.failed,
      ignored: one.counts.ignored + other.counts.ignored,
    },
  }));
}
