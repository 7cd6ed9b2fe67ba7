/** Files whose tests wait for minutes in all, and compute little. They begin first. */
const WAITING: readonly string[] = [
  "tests/e2e/paused_holder_test.ts",
  "tests/e2e/doc_commands_test.ts",
  "tests/e2e/locks_test.ts",
];

/** A process loads all of larder, which pays for so many files. */
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
