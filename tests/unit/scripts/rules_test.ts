import assert from "node:assert/strict";
import { promiseProblems, PROMISING_PAGES } from "../../../scripts/check_docs/promises.ts";
import { readRules, type Rule, ruleProblems } from "../../../scripts/check_docs/rules.ts";

const FILES: Readonly<Record<string, string>> = {
  "README.md": "larder keeps\nits promises.",
  "src/a.ts": `class Keeper { #keep(all: boolean) { const local = 1; } }
const [limit, OPTION] = [1, 2];
function other<T>() { called(); }
const LIMIT = 2;`,
  "nix/a.nix": "{\n  options.services.a = {\n    enable = mkIf b;\n  };\n}",
  "scripts/run": "first=1\nin_order() {\n  local second=2\n}\nin_order",
  "tests/a_test.ts": `Deno.test("promises: they are kept", () => {});
// Deno.test("promises: they are a comment", () => {});
for (const one of CASES) {
  Deno.test(\`promises: what \${one}\${and} says is kept\`, () => {});
  Deno.test({ name: "promises: of what is " + \`\${one} too\` + (why && ""), fn() {} });
  Deno.test(\`promises: \${one}\`, () => {});
  testUnless("promises: a program is missing", "promises: of programs are kept", fn);
  executableTest("promises: a root is missing", "promises: of executables are kept", fn);
  assert.ok(kept, "promises: a message of it");
  /kept/.test("promises: a text of it");
}
const clauses: Clauses<Keeper> = {
  "promises: a clause of it": async (keeper) => {},
};
const words = { name: "promises: a word of it", "promises: a key of it": () => {} };`,
};

const RULE: Rule = {
  page: "README.md",
  promise: "larder keeps its promises",
  keeper: "src/a.ts:#keep",
  testPath: "tests/a_test.ts",
  testName: "promises: they are kept",
};

function problemsOf(change: Partial<Rule>): readonly string[] {
  return ruleProblems({ ...RULE, ...change }, (path) => FILES[path]);
}

Deno.test("rules: a promise, its keeper and its test all exist", () => {
  assert.deepEqual(problemsOf({}), []);
  assert.deepEqual(problemsOf({ keeper: "src/a.ts:Keeper" }), []);
  const others = ["src/a.ts:LIMIT", "scripts/run:in_order", "nix/a.nix:options.services.a"];
  for (const keeper of ["src/a.ts:other", ...others]) {
    assert.deepEqual(problemsOf({ keeper }), [], keeper);
  }
});

Deno.test("rules: a missing part of one is named", () => {
  assert.match(
    problemsOf({ promise: "larder makes coffee" })[0] ?? "",
    /README\.md does not say so$/,
  );
  const missing = ["src/a.ts:#kee", "src/a.ts:called", "src/b.ts:#keep", "src/a.ts:local"];
  const elsewhere = ["scripts/run:second", "scripts/run:order", "nix/a.nix:mkIf"];
  for (const keeper of [...missing, ...elsewhere]) {
    assert.equal(problemsOf({ keeper }).length, 1, keeper);
  }
  assert.match(problemsOf({ testName: "promises: not" })[0] ?? "", /a_test\.ts has no test/);
  assert.equal(problemsOf({ testPath: "tests/b_test.ts" }).length, 1);
});

Deno.test("rules: a test has its whole name, with a mark for computed parts", () => {
  const excused = ["promises: of programs are kept", "promises: of executables are kept"];
  const computed = ["promises: what … says is kept", "promises: of what is … too…"];
  for (const testName of [...computed, ...excused, "promises: a clause of it"]) {
    assert.deepEqual(problemsOf({ testName }), [], testName);
  }
  const parts = ["they are kept", "promises: they are a comment", "promises: what … says"];
  for (const testName of parts) {
    assert.match(problemsOf({ testName })[0] ?? "", /a_test\.ts has no test/, testName);
  }
  assert.match(problemsOf({ testName: "promises: …" })[0] ?? "", /mostly computed/);
});

Deno.test("rules: a message, a key or a text of a test is no name of one", () => {
  const texts = ["a program is missing", "a root is missing", "a message of it", "a text of it"];
  for (const text of [...texts, "a word of it", "a key of it"]) {
    const [problem] = problemsOf({ testName: `promises: ${text}` });
    assert.match(problem ?? "", /a_test\.ts has no test/, text);
  }
});

Deno.test("rules: a row of another shape is a problem, and no rule is lost in silence", () => {
  const { promise, keeper, testPath, testName } = RULE;
  const row = `| ${promise} | \`${keeper}\` | \`${testPath}\`: ${testName} |`;
  const head = "| Promise | Kept by | Held by |\n| --- | --- | --- |";
  assert.deepEqual(readRules(`# Rules\n\n${head}\n${row}\n`), { rules: [RULE], problems: [] });
  assert.equal(readRules(`${head}\n| a | b | c |`).problems.length, 1);
});

Deno.test("rules: a heading names the page of the promises below it", () => {
  const row = `| ${RULE.promise} | \`${RULE.keeper}\` | \`${RULE.testPath}\`: ${RULE.testName} |`;
  const pagesOf = (heading: string) =>
    readRules(`## ${heading}\n${row}`).rules.map((one) => one.page);
  assert.deepEqual(pagesOf("[Clients](clients.md)"), ["docs/clients.md"]);
  assert.deepEqual(pagesOf("[Start](../README.md)"), ["README.md"]);
  assert.match(readRules("## Clients").problems[0] ?? "", /^docs\/rules\.md:1: is no heading/);
});

const README = `# larder

larder keeps promises. It is
quick.

## Why larder

* **All is well.** Nothing breaks, and
  nothing is lost. [Each](a.md) file stays.
* **The bold word alone.**

## Try it

Run \`it\`:

\`\`\`sh
# A heading of commands
make it   # takes seconds, and leaves nothing
\`\`\`

![A picture. It says little.](a.svg)

## Install

No release is published yet, so each way begins in a clone.
Run it on NixOS.

## Clients

Add a line.

## Others

This page promises nothing here.
`;

const OF_README = PROMISING_PAGES.find(({ path }) => path === "README.md") ?? assert.fail();

Deno.test("rules: each sentence of the README's first sections has a row", () => {
  const problems = (...promises: readonly string[]) =>
    promiseProblems(OF_README, README, promises.map((promise) => ({ ...RULE, promise })));
  const all = ["larder keeps promises. It is quick.", "nothing is lost", "Each](a.md) file stays"];
  const rest = ["The bold word alone", "Run `it`"];
  const [code, ...last] = ["leaves nothing", "Run it on NixOS.", "Add a line."];
  assert.deepEqual(problems(...all, ...rest, code, ...last), []);
  assert.deepEqual(problems(...all, ...rest, ...last), [
    'README.md: no row of docs/rules.md quotes "takes seconds, and leaves nothing"',
  ]);
  assert.deepEqual(problems(...all, code, ...last), [
    'README.md: no row of docs/rules.md quotes "**The bold word alone.**"',
    'README.md: no row of docs/rules.md quotes "Run `it`:"',
  ]);
  assert.deepEqual(problems(...all.slice(1), "It is quick", ...rest, code, ...last), [
    'README.md: no row of docs/rules.md quotes "larder keeps promises."',
  ]);
  const elsewhere = { ...RULE, page: "docs/a.md", promise: "Run `it`" };
  assert.equal(promiseProblems(OF_README, README, [elsewhere]).length, 9);
  const short = promiseProblems(OF_README, "# larder\n\nHi.\n", []);
  assert.match(short[1] ?? "", /no section "Why larder"/);
});

Deno.test("rules: each row of a table has a row, unless a script writes the table", () => {
  const text = `# Page

## Rows

Read this.

| Who | What |
| --- | --- |
| a guest | reads. Or not |
| an owner | writes |

<!-- rights:begin -->

| Who | What |
| --- | --- |
| nobody | removes |

<!-- rights:end -->
`;
  const page = { path: "docs/page.md", sections: ["Rows"], noPromises: ["Read this."] };
  const rule = { ...RULE, page: "docs/page.md", promise: "an owner | writes" };
  assert.deepEqual(promiseProblems(page, text, [rule]), [
    'docs/page.md: no row of docs/rules.md quotes "| a guest | reads. Or not |"',
  ]);
});
