import assert from "node:assert/strict";
import { joined, partsOf, skippedIn, testFilesAt, wordsFor } from "../../../scripts/test_runs.ts";

const WAITING = "tests/e2e/paused_holder_test.ts";
const ALL = [WAITING, "tests/e2e/doc_commands_test.ts", "tests/e2e/locks_test.ts"];

Deno.test("test runs: each file is in one part, and those that wait are in the first", () => {
  const files = testFilesAt(["tests/e2e/", "./tests/unit", WAITING]);
  assert.equal(new Set(files).size, files.length);
  const [first = [], ...others] = partsOf(files);
  assert.deepEqual(first, ALL);
  assert.deepEqual([...first, ...others.flat()].sort(), [...files].sort());
  const lengths = others.map(({ length }) => length);
  assert.ok(lengths.length > 1 && Math.max(...lengths) - Math.min(...lengths) <= 1);
});

Deno.test("test runs: few files are one part", () => {
  assert.deepEqual(partsOf([WAITING]), [[WAITING]]);
  assert.deepEqual(partsOf(["a", "b"]), [["a", "b"]]);
});

Deno.test("test runs: two at once are one with the failures and the counts of both", () => {
  const good = { code: 0, counts: { passed: 3, failed: 0, ignored: 1 } };
  const bad = { code: 1, counts: { passed: 0, failed: 2, ignored: 0 } };
  const both = joined([good, bad]);

  assert.equal(both.code, 1);
  assert.deepEqual(both.counts, { passed: 3, failed: 2, ignored: 1 });
  assert.equal(joined([good, { ...bad, counts: undefined }]).counts, undefined);
});

Deno.test("test runs: those that a log names as skipped run, and no others", () => {
  const log = [
    "running 2 tests from ./tests/unit/a_test.ts",
    "it (a) runs: 1/2 + 1/2 (skipped: curl is not installed (Debian: apt install curl)) ... ignored (0ms)",
    "it runs ... ok (1ms)",
    "running 1 test from ./tests/unit/b_test.ts",
    "another ... ok (1ms)",
  ].join("\n");
  const tests = skippedIn(log);
  assert.deepEqual(tests, [{ file: "tests/unit/a_test.ts", name: "it (a) runs: 1/2 + 1/2" }]);

  const [filter = "", ...files] = wordsFor(tests, ["tests/unit/a_test.ts"]);
  assert.deepEqual(files, ["tests/unit/a_test.ts"]);
  const names = new RegExp(filter.slice("--filter=/".length, -1));
  assert.ok(names.test("it (a) runs: 1/2 + 1/2"));
  assert.ok(names.test("it (a) runs: 1/2 + 1/2 (skipped: why)"));
  assert.ok(!names.test("it runs") && !names.test("and it (a) runs: 1/2 + 1/2"));
});
