/** Files whose tests wait for a minute in all, and compute little. */
const WAITING: readonly string[] = [
  "tests/e2e/paused_holder_test.ts",
  "tests/e2e/doc_commands_test.ts",
  "tests/e2e/locks_test.ts",
];

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
  /** Test files with a failed test, and the number of failures that they show. */
  readonly files: ReadonlySet<string>;
  readonly failures: number;
  readonly wasStarved: boolean;
}

/** Paths of tests for two runs at once. */
export interface SplitPaths {
  readonly others: readonly string[];
  /** The waiting files; empty if there is nothing for them to run beside. */
  readonly beside: readonly string[];
}

/** Splits paths of files and folders. The waiting files may still be in a folder of `others`. */
export function besideOthers(paths: readonly string[]): SplitPaths {
  const beside = WAITING.filter((file) =>
    paths.some((path) => file === path || file.startsWith(`${path.replace(/\/$/, "")}/`))
  );
  const others = paths.filter((path) => !beside.includes(path));
  return others.length === 0 ? { others: paths, beside: [] } : { others, beside };
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
    files: one.files.union(other.files),
    failures: one.failures + other.failures,
    wasStarved: one.wasStarved || other.wasStarved,
  }));
}
