import assert from "node:assert/strict";
import { besideOthers, joined } from "../../../scripts/test_runs.ts";

const WAITING = "tests/e2e/paused_holder_test.ts";
const ALL = [WAITING, "tests/e2e/doc_commands_test.ts", "tests/e2e/locks_test.ts"];

Deno.test("test runs: files that wait run beside others, and alone where they are alone", () => {
  const splits: readonly (readonly [paths: readonly string[], others: string, beside: string])[] = [
    [["tests"], "tests", ALL.join()],
    [["tests/e2e/", "tests/reliability"], "tests/e2e/,tests/reliability", ALL.join()],
    [[WAITING, "tests/http"], "tests/http", WAITING],
    [[WAITING], WAITING, ""],
    [["tests/unit"], "tests/unit", ""],
  ];
  for (const [paths, others, beside] of splits) {
    const split = besideOthers(paths);
    assert.deepEqual([split.others.join(), split.beside.join()], [others, beside], `${paths}`);
  }
  for (const file of ALL) {
    assert.ok(Deno.statSync(new URL(`../../../${file}`, import.meta.url)).isFile);
  }
});

Deno.test("test runs: two at once are one with the failures and the counts of both", () => {
  const good = {
    code: 0,
    counts: { passed: 3, failed: 0, ignored: 1 },
    files: new Set<string>(),
    failures: 0,
    wasStarved: false,
  };
  const bad = { ...good, code: 1, counts: { passed: 0, failed: 2, ignored: 0 }, failures: 2 };
  const both = joined([good, { ...bad, files: new Set(["a"]) }]);

  assert.equal(both.code, 1);
  assert.deepEqual(both.counts, { passed: 3, failed: 2, ignored: 1 });
  assert.deepEqual([[...both.files], both.failures], [["a"], 2]);
  assert.equal(joined([good, { ...bad, counts: undefined }]).counts, undefined);
});
