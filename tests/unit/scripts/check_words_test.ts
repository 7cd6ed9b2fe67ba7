import assert from "node:assert/strict";
import { commentsOf, paragraphsOf, testNamesOf } from "../../../scripts/check_words/prose.ts";
import { wordingProblems } from "../../../scripts/check_words/wording.ts";

function problemsOf(text: string): readonly string[] {
  return wordingProblems("a.ts", commentsOf(text));
}

function words(count: number): string {
  return `${"word ".repeat(count - 1)}end.`;
}

Deno.test("words: a sentence of 25 words passes, one of 26 is a problem", () => {
  assert.deepEqual(problemsOf(`// ${words(25)}`), []);
  assert.deepEqual(problemsOf(`\n// ${words(26)}`), [
    'a.ts:2: "word word word word word …" has 26 words, at most 25',
  ]);
});

Deno.test("words: a sentence ends at its full stop, and goes on over lines", () => {
  assert.deepEqual(problemsOf(`/** ${words(20)} A ${words(20)} */`), []);
  const [problem] = problemsOf(`  /**\n   * ${"word ".repeat(20)}\n   * ${words(6)}\n   */`);
  assert.match(problem ?? "", /^a\.ts:2: .* 26 words/);
});

Deno.test("words: a paraphrase is a problem in a comment, not in code or quoted text", () => {
  assert.deepEqual(problemsOf("/** The request under way. */"), [
    'a.ts:1: "under way" is a paraphrase of: running, or in flight',
  ]);
  const harmless = 'const under = "under way";\n// Logs "under way" for `under way`.';
  assert.deepEqual(problemsOf(harmless), []);
});

Deno.test("words: list items stand alone, tables and code do not count", () => {
  const [half, code] = ["word ".repeat(20), `\`\`\`\n${words(30)}\n\`\`\``];
  const document = `* ${half}\n* ${half}\n\n| ${words(30)} |\n\n${code}\n`;
  assert.deepEqual(wordingProblems("a.md", paragraphsOf(document)), []);
  const item = `Text.\n\n* ${half}\n  ${half}`;
  const [problem] = wordingProblems("a.md", paragraphsOf(item));
  assert.match(problem ?? "", /^a\.md:3: .* 40 words/);
});

Deno.test("words: names of tests, properties and clauses count, their code does not", () => {
  const problems = (source: string) => wordingProblems("a_test.ts", testNamesOf(source)).length;
  for (const name of ['"a file asked for"', "`a file asked for ${1}`"]) {
    assert.equal(problems(`Deno.test(${name}, () => {});`), 1);
    assert.equal(problems(`timedTest(${name}, () => {});`), 1);
    assert.equal(problems(`testUnless(missing("a", "b"), ${name}, () => {});`), 1);
    assert.equal(problems(`checkProperty(\n  ${name},\n`), 1);
    assert.equal(problems(`  Deno.test({\n    name: ${name},\n`), 1);
  }
  assert.equal(problems('  "a file asked for": async (store) => {'), 1);
  assert.equal(problems('Deno.test("a file", () => say("asked for"));'), 0);
});
