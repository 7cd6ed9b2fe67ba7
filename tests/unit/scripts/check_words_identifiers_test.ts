import assert from "node:assert/strict";
import { identifierProblems } from "../../../scripts/check_words/identifiers.ts";

function namesIn(source: string): readonly string[] {
  return identifierProblems("a.ts", source).map((problem) => problem.split('"')[1] ?? "");
}

Deno.test("words: a replaced word is a problem in each form of an identifier", () => {
  assert.deepEqual(identifierProblems("a.ts", "let one = 1;\none += callPatience;\n"), [
    'a.ts:2: "callPatience" has "patience": wait, retries or timeouts',
  ]);
  for (const name of ["PATIENCE_MAX", "#doubt", "tieNar", "HTTPOutlet", "is_unkept", "strain2"]) {
    assert.deepEqual(namesIn(`class A { ${name} = 1; }`), [name]);
  }
});

Deno.test("words: an identifier is a problem once, at its first line", () => {
  assert.deepEqual(identifierProblems("a.ts", "\nmender();\nmender(mender);\n"), [
    'a.ts:2: "mender" has "mender": repairer',
  ]);
});

Deno.test("words: a word within another, in a string or in a comment is no identifier's", () => {
  assert.deepEqual(namesIn("const constraint = untied, patients, outlets2Go;"), []);
  assert.deepEqual(namesIn('const kind = "stray"; // "hungry" behind `patience`'), []);
});

Deno.test("words: the name of a file is an identifier too", () => {
  assert.deepEqual(identifierProblems("src/b/nar_patience.ts", "export {};"), [
    'src/b/nar_patience.ts:1: "nar_patience.ts" has "patience": wait, retries or timeouts',
  ]);
  assert.deepEqual(identifierProblems("src/patience/nar.ts", "export {};"), []);
});
