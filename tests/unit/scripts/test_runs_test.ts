import assert from "node:assert/strict";
import { joined, partsOf, skippedIn, testFilesAt, wordsFor } from "../../../scripts/test_runs.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const WAITING = "tests/e2e/paused_holder_test.ts";
const ALL = [WAITING, "tests/e2e/doc_commands_test.ts", "tests/e2e/locks_test.ts"];

/** Files of tests by their names. */
const SHARING = {
  a: `Deno.test("it works", () => {});
Deno.test.ignore("it lacks curl (skipped: no curl)", () => {});`,
  b: `Deno.test("it works, too", () => {});
Deno.test("it fails", () => { throw new Error("no reason"); });`,
  c: 'throw new Error("it is broken");',
};

Deno.test("test runs: each file is in one part, and those that wait are in the first", () => {
  const files = testFilesAt(["tests/e2e/", "./tests/unit", WAITING]);
  assert.equal(new Set(files).size, files.length);
  const [first = [], ...others] = partsOf(files, 2);
  assert.deepEqual(first, ALL);
  assert.deepEqual([...first, ...others.flat()].sort(), [...files].sort());
  const lengths = others.map(({ length }) => length);
  assert.ok(lengths.length > 1 && Math.max(...lengths) - Math.min(...lengths) <= 1);
});

Deno.test("test runs: few files are one part", () => {
  assert.deepEqual(partsOf([WAITING], 2), [[WAITING]]);
  assert.deepEqual(partsOf(["a", "b"], 2), [["a", "b"]]);
  assert.deepEqual(partsOf(ALL, 1), [ALL]);
});

Deno.test("test runs: two at once are one with the failures and the counts of both", () => {
  const good = { code: 0, counts: { passed: 3, failed: 0, ignored: 1 } };
  const bad = { code: 1, counts: { passed: 0, failed: 2, ignored: 0 } };
  const both = joined([good, bad]);

  assert.equal(both.code, 1);
  assert.deepEqual(both.counts, { passed: 3, failed: 2, ignored: 1 });
  assert.equal(joined([good, { ...bad, counts: undefined }]).counts, undefined);
});

/** Runs the script on the files that share a module. */
async function runOfSharing(...options: readonly string[]) {
  using folder = tempFolder();
  const tests = `${folder.path}/tests/unit`;
  Deno.mkdirSync(tests, { recursive: true });
  for (const [name, text] of Object.entries(SHARING)) {
    Deno.writeTextFileSync(`${tests}/${name}_test.ts`, text);
  }
  const script = new URL("../../../scripts/test.ts", import.meta.url).pathname;
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--allow-all", script, ...options, "tests/unit"],
    cwd: folder.path,
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stdout);
  return { code, text, lines: text.replace(/ \(\d.*?\)$/gm, "").split("\n") };
}

Deno.test("test runs: files that share a module are named as if each had its own", async () => {
  const { code, text, lines } = await runOfSharing();

  assert.equal(code, 1, text);
  assert.deepEqual(lines.slice(0, 9), [
    "running tests from ./tests/unit/a_test.ts",
    "it works ... ok",
    "it lacks curl (skipped: no curl) ... ignored",
    "running tests from ./tests/unit/b_test.ts",
    "it works, too ... ok",
    "it fails ... FAILED",
    "running tests from ./tests/unit/c_test.ts",
    "./tests/unit/c_test.ts loads ... FAILED",
    "",
  ]);
  assert.match(text, /^it fails => \.\/tests\/unit\/b_test\.ts:2:6$/m);
  assert.match(text, /^error: Error: no reason\n(?:.*\n){2} {4}at .*\/tests\/unit\/b_test\.ts:2:/m);
  assert.match(
    text,
    /^error: Error: it is broken\n(?:.*\n){2} {4}at .*\/tests\/unit\/c_test\.ts:1:/m,
  );
  assert.deepEqual(lines.slice(-6), [
    "FAILED | 2 passed | 2 failed | 1 ignored",
    "",
    "Skipped:",
    "  it lacks curl (skipped: no curl)",
    "2 passed, 2 failed, 1 skipped",
    "",
  ]);
});

Deno.test("test runs: a list names those that would be skipped, and runs none", async () => {
  const { lines } = await runOfSharing("--list-skipped");

  const [first, skipped] = skippedIn(lines.join("\n"));
  assert.deepEqual(first, { file: "tests/unit/a_test.ts", name: "it lacks curl" });
  assert.equal(skipped, undefined);
  assert.equal(lines.at(-2), "0 passed, 0 failed, 1 skipped");
});

Deno.test("test runs: those that a log names as skipped run, and no others", () => {
  const log = [
    "running 2 tests from ./tests/unit/a_test.ts",
    "it (a) runs: 1/2 + 1/2 (skipped: curl is not installed (Debian: apt install curl)) ... ignored (0ms)",
    "it runs ... ok (1ms)",
    "running tests from ./tests/unit/b_test.ts",
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
