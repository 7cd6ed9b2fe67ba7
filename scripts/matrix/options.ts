import { parseArgs } from "node:util";

export type BackEnd = "postgres" | "s3" | "redis";

export interface MatrixOptions {
  readonly combinations: readonly (readonly BackEnd[])[];
  /** Arguments of the task `test`. */
  readonly words: readonly string[];
}

export const USAGE = `Tests on each combination of back ends.

  --on LIST  one combination: "postgres,s3,redis", or some of them
  --filter T the tests of this name
  --short    the files of which each change runs one combination
  FILE...    these tests instead
`;

const BACK_ENDS: readonly BackEnd[] = ["postgres", "s3", "redis"];

/** Throws an Error that explains invalid arguments. */
export function readOptions(words: readonly string[]): MatrixOptions {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: {
      on: { type: "string" },
      short: { type: "boolean", default: false },
      filter: { type: "string" },
    },
    allowPositionals: true,
  });
  const filter = values.filter === undefined ? [] : ["--filter", values.filter];
  return {
    combinations: values.on === undefined ? everyCombination() : [combinationOf(values.on)],
    words: [...filter, ...(positionals.length > 0 ? positionals : values.short ? SHORT : LONG)],
  };
}

const SHORT: readonly string[] = [
  "tests/e2e/kill_test.ts",
  "tests/e2e/members_test.ts",
  "tests/e2e/replicas_test.ts",
  "tests/e2e/resume_test.ts",
  "tests/http/nar_test.ts",
  "tests/http/size_limit_test.ts",
  "tests/http/upload_test.ts",
];

/**
 * Commands, pages, logs, telemetry and TLS know no back end. Tests of files of SQLite, and of one
 * back end alone, make a difference on none.
 */
const LONG: readonly string[] = [
  "tests/e2e/balanced_test.ts",
  "tests/e2e/closure_test.ts",
  "tests/e2e/documents_test.ts",
  "tests/e2e/kill_test.ts",
  "tests/e2e/large_output_test.ts",
  "tests/e2e/locks_test.ts",
  "tests/e2e/members_test.ts",
  "tests/e2e/paused_holder_test.ts",
  "tests/e2e/pinned_closure_test.ts",
  "tests/e2e/redis_absent_test.ts",
  "tests/e2e/replicas_test.ts",
  "tests/e2e/resume_test.ts",
  "tests/e2e/shutdown_test.ts",
  "tests/e2e/substituters_test.ts",
  "tests/e2e/upload_crowd_test.ts",
  "tests/e2e/upload_test.ts",
  "tests/http",
  "tests/reliability/broken_uploads_test.ts",
];

function combinationOf(text: string): readonly BackEnd[] {
  const words = text.split(",").filter((word) => word !== "");
  const unknown = words.filter((word) => !BACK_ENDS.some((one) => one === word));
  if (unknown.length > 0) throw new Error(`--on has "${unknown}": expected ${BACK_ENDS}`);
  return BACK_ENDS.filter((one) => words.includes(one));
}

/** All combinations of back ends, from none of them to all. */
function everyCombination(): readonly (readonly BackEnd[])[] {
  return Array.from({ length: 2 ** BACK_ENDS.length }, (_, bits) => (
    BACK_ENDS.filter((_, at) => (bits >> at) % 2 === 1)
  ));
}
