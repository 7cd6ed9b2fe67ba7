/** Files whose tests wait for minutes in all, and compute little. They begin first. */
const WAITING: readonly string[] = [
  "tests/e2e/paused_holder_test.ts",
  "tests/e2e/doc_commands_test.ts",
  "tests/e2e/locks_test.ts",
];

/** The least files of a process, which loads all of larder. */
const PART_FILES_MIN = 12;
const PARTS_MAX = 8;

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

/** Deals files of tests to processes, of which several may run at once. */
export function partsOf(files: readonly string[]): readonly (readonly string[])[] {
  const first = WAITING.filter((file) => files.includes(file));
  const others = files.filter((file) => !first.includes(file));
  const count = Math.min(PARTS_MAX, Math.max(1, Math.floor(others.length / PART_FILES_MIN)));
  // Neighbours take a similar time, so no part gets them all.
  const parts = Array.from({ length: count }, (_, part) => (
    others.filter((_, at) => at % count === part)
  ));
  return [first, ...parts].filter(({ length }) => length > 0);
}

/** A test of a run, by its file and its name without the reason why it was skipped. */
export interface SkippedTest {
  readonly file: string;
  readonly name: string;
}

const FILE_REGEXP = /^running \d+ tests? from (?:\.\/)?(.*)$/;
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

/** Arguments of `deno test` for those of these tests that are in these files. */
export function wordsFor(all: readonly SkippedTest[], among: readonly string[]): readonly string[] {
  const tests = all.filter(({ file }) => among.includes(file));
  if (tests.length === 0) throw new Error("The run with this log skipped no test of these files");
  const names = tests.map(({ name }) => name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  const files = new Set(tests.map(({ file }) => file));
  // Here one may be skipped, too.
  return [`--filter=/^(?:${names.join("|")})(?: \\(skipped: .*)?$/`, ...files];
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
