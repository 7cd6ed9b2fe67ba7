import assert from "node:assert/strict";
import { docBeginProblems } from "../../../scripts/check_words/doc_begin.ts";
import { markedCommentsOf, quotedTextOf } from "../../../scripts/check_words/marked_comments.ts";
import { stringsOf, trailingCommentsOf } from "../../../scripts/check_words/source_prose.ts";
import { tableCellsOf } from "../../../scripts/check_words/table_cells.ts";
import { type Prose, wordingProblems } from "../../../scripts/check_words/wording.ts";

const PLANTED = "somebody has the lock under way";
const LONG = `${"word ".repeat(25)}end`;

function linesOf(prose: readonly Prose[]): readonly number[] {
  const problems = wordingProblems("a", prose);
  return [...new Set(problems.map((one) => Number(one.split(":")[1])))].sort((a, b) => a - b);
}

Deno.test("words: a comment behind code is found, one like it in a string is none", () => {
  const source = [
    `const one = 1; // ${PLANTED}`,
    `call(/[/"]/, "https://a", two); // ${LONG}`,
    `const url = "http://somebody";`,
    `  return /\\/\\/ ${PLANTED}/;`,
    "const template = `",
    `  text // ${PLANTED}`,
    "`; /* a request under way */",
  ].join("\n");
  assert.deepEqual(linesOf(trailingCommentsOf(source)), [1, 2, 7]);
});

Deno.test("words: a comment on its own line is no trailing one", () => {
  assert.deepEqual(trailingCommentsOf(`const one = 1;\n// ${PLANTED}\nconst two = 2;`), []);
});

Deno.test("words: messages in strings, templates and joined strings are found", () => {
  const source = [
    `throw new Error("Cannot measure: ${PLANTED}");`,
    "log.warn(`request ${id} is under way again`);",
    `const usage = "A sentence of " +\n  \`\${"word ".length} ${LONG}\`;`,
    `call(\`value \${name("the request is under way")} here\`);`,
  ].join("\n");
  assert.deepEqual(linesOf(stringsOf(source)), [1, 2, 3, 5]);
});

Deno.test("words: names, SQL, HTML and scripts in strings are no prose", () => {
  const source = [
    `const name = "somebody";`,
    `const sql = "SELECT a, b, c, d FROM somebody WHERE id = ?";`,
    `const part = "AND EXISTS (SELECT 1 FROM somebody WHERE a = b)";`,
    `const html = "<p class='a'>one two three somebody four</p>";`,
    `const script = "const somebody = () => { return 1 + 2; };";`,
  ].join("\n");
  assert.deepEqual(linesOf(stringsOf(source)), []);
});

Deno.test("words: the lines of a string with paragraphs have their own numbers", () => {
  const usage = `const USAGE = \`One line.\n\n  --flag  ${PLANTED}\n\n${LONG}\n\`;`;
  assert.deepEqual(linesOf(stringsOf(usage)), [3, 5]);
});

Deno.test("words: a table cell is a problem by itself, a named test and code are none", () => {
  const cell = "word ".repeat(15);
  const table = [
    "| Field | Meaning |",
    "| --- | --- |",
    `| ${cell} | ${cell} |`,
    `| a\\|b | ${LONG} |`,
    `| a promise | \`tests/a_test.ts\`: ${PLANTED} |`,
    "```",
    `| ${PLANTED} |`,
    "```",
    `| ${PLANTED} |`,
  ].join("\n");
  assert.deepEqual(linesOf(tableCellsOf(table)), [4, 9]);
});

Deno.test("words: comments of SQL are found, on lines of their own and behind columns", () => {
  const sql = [
    `-- ${"word ".repeat(15)}`,
    `-- ${"word ".repeat(15)}`,
    "CREATE TABLE a (",
    `  id INTEGER, -- ${PLANTED}`,
    `  text TEXT DEFAULT '-- ${PLANTED}'`,
    ");",
  ].join("\n");
  assert.deepEqual(linesOf(markedCommentsOf(sql, "--")), [1, 4]);
});

Deno.test("words: comments of shell, Nix and YAML are found, examples in them are none", () => {
  const shell = [
    "#!/bin/sh somebody",
    `# ${LONG}`,
    `#   somebody --under way`,
    `run "# ${PLANTED}" # ${PLANTED}`,
    `count=\${#somebody} # fine`,
    "#",
    `# ${PLANTED}`,
  ].join("\n");
  assert.deepEqual(linesOf(markedCommentsOf(shell, "#")), [2, 4, 7]);
});

Deno.test("words: quoted text of Nix and YAML is found, with its values and paragraphs", () => {
  const yaml = [
    `summary: "{{ $labels.instance }} has ${PLANTED}"`,
    `name: "somebody"`,
    `description = "${"word ".repeat(20)}\\n\\n${"word ".repeat(20)}";`,
    `description = "${LONG}";`,
  ].join("\n");
  assert.deepEqual(linesOf(quotedTextOf(yaml)), [1, 4]);
});

Deno.test("words: a doc comment that begins with a pronoun is a problem", () => {
  // Written whole, each would be a problem of this file.
  const doc = (text: string) => `/** ${text} */`;
  const source = [
    doc("What it is."),
    "/** The thing: what it is. */",
    "  /**",
    "   * Whose turn it is.",
    "   */",
    "// What a plain comment explains.",
    "/** Whatever. */",
    `export interface A { ${doc("Who asks.")} readonly a: 1 }`,
  ].join("\n");
  assert.deepEqual(docBeginProblems("a.ts", source), [
    'a.ts:1: a doc comment begins with "What": begin with a noun',
    'a.ts:3: a doc comment begins with "Whose": begin with a noun',
    'a.ts:8: a doc comment begins with "Who": begin with a noun',
  ]);
});
