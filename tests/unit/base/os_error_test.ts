import assert from "node:assert/strict";
import fc from "fast-check";
import { messageOf, reasonOf } from "../../../src/base/failure.ts";
import { checkProperty } from "../../support/property.ts";

/** An error of Deno's, larder's text for it, and its text behind a path. */
const CASES: readonly (readonly [string, string, string])[] = [
  [
    "No such file or directory (os error 2): readfile '/a b'",
    ": /a b",
    "No such file or directory",
  ],
  ["No such file or directory (os error 2): rename '/a' -> '/b'", ": /a to /b", "directory"],
  ["No such file or directory (os error 2): tmpfile", "No such file or directory", "directory"],
  ["Connection refused (os error 111)", "Connection refused", "Connection refused"],
  [
    "client error (Connect): tcp connect error: No route (os error 113)",
    "error: No route",
    "route",
  ],
  ["Disk (os error 28), said twice (os error 28): write '/a'", "Disk, said twice: /a", "twice"],
  ["No (os error 2): readfile '/it''s -> \n'", ": /it''s -> \n", "No"],
];

for (const [thrown, said, reason] of CASES) {
  Deno.test(`system errors: "${thrown.replace("\n", "\\n")}" becomes a sentence`, () => {
    const error = new Error(thrown);

    assert.ok(messageOf(error).endsWith(said), messageOf(error));
    assert.ok(reasonOf(error).endsWith(reason), reasonOf(error));
    assert.doesNotMatch(`${messageOf(error)} ${reasonOf(error)}`, /os error|readfile|rename/);
  });
}

Deno.test("system errors: those of a real file become sentences", () => {
  assert.throws(() => Deno.readTextFileSync("/none"), (error) => {
    assert.equal(messageOf(error), "No such file or directory: /none");
    assert.equal(reasonOf(error), "No such file or directory");
    return true;
  });
});

const path = fc.string({ unit: fc.constantFrom(..."ab/ .-'\n"), maxLength: 20 });
const call = fc.constantFrom("readfile", "open", "mkdir", "tmpfile");

checkProperty(
  "system errors: no number and no call is left, whatever the paths are called",
  fc.property(fc.nat(200), call, path, (number, name, at) => {
    const said = new Error(`It failed (os error ${number}): ${name} '${at}'`);
    assert.equal(messageOf(said), at === "" ? "It failed" : `It failed: ${at}`);
    assert.equal(reasonOf(said), "It failed");
  }),
);
