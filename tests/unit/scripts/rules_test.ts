import assert from "node:assert/strict";
import { readRules, type Rule, ruleProblems } from "../../../scripts/check_docs/rules.ts";

const FILES: Readonly<Record<string, string>> = {
  "README.md": "larder keeps\nits promises.",
  "src/a.ts": "class Keeper { #keep(all: boolean) {} }\nfunction other<T>() { called(); }",
  "tests/a_test.ts": `Deno.test("promises: they are kept", () => {});
// Deno.test("promises: they are a comment", () => {});
for (const one of CASES) {
  Deno.test(\`promises: what \${one}\${and} says is kept\`, () => {});
  Deno.test({ name: "promises: of what is " + \`\${one} too\` + (why && ""), fn() {} });
  Deno.test(\`promises: \${one}\`, () => {});
}`,
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

Deno.test("rules: a promise, what keeps it and its test all exist", () => {
  assert.deepEqual(problemsOf({}), []);
  assert.deepEqual(problemsOf({ keeper: "src/a.ts:Keeper" }), []);
  assert.deepEqual(problemsOf({ keeper: "src/a.ts:other" }), []);
});

Deno.test("rules: what is missing of one is named", () => {
  assert.match(
    problemsOf({ promise: "larder makes coffee" })[0] ?? "",
    /README\.md does not say so$/,
  );
  for (const keeper of ["src/a.ts:#kee", "src/a.ts:called", "src/b.ts:#keep"]) {
    assert.equal(problemsOf({ keeper }).length, 1, keeper);
  }
  assert.match(problemsOf({ testName: "promises: not" })[0] ?? "", /a_test\.ts has no test/);
  assert.equal(problemsOf({ testPath: "tests/b_test.ts" }).length, 1);
});

Deno.test("rules: a test has its whole name, with a mark for what is computed", () => {
  for (const testName of ["promises: what … says is kept", "promises: of what is … too…"]) {
    assert.deepEqual(problemsOf({ testName }), []);
  }
  const parts = ["they are kept", "promises: they are a comment", "promises: what … says"];
  for (const testName of parts) {
    assert.match(problemsOf({ testName })[0] ?? "", /a_test\.ts has no test/, testName);
  }
  assert.match(problemsOf({ testName: "promises: …" })[0] ?? "", /mostly computed/);
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
