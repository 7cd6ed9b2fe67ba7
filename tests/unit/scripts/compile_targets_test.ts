import assert from "node:assert/strict";
import { buildsOf, TARGETS } from "../../../scripts/compile/targets.ts";

Deno.test("compile: without a target it builds dist/larder for this machine", () => {
  assert.deepEqual(buildsOf([], "1.2.3"), [{ triple: undefined, output: "dist/larder" }]);
});

Deno.test("compile: a target's executable has version and platform in its name", () => {
  const outputs = (...words: readonly string[]) =>
    buildsOf(words, "1.2.3").map(({ output }) => output);

  assert.deepEqual(outputs("--target", "aarch64-linux"), ["dist/larder-1.2.3-aarch64-linux"]);
  assert.deepEqual(outputs("--target", "x86_64-pc-windows-msvc"), [
    "dist/larder-1.2.3-x86_64-windows.exe",
  ]);
  assert.deepEqual(
    outputs("--target", "x86_64-macos", "--target", "aarch64-macos"),
    ["dist/larder-1.2.3-x86_64-macos", "dist/larder-1.2.3-aarch64-macos"],
  );
  assert.equal(new Set(outputs("--target", "all")).size, TARGETS.length);
});

Deno.test("compile: an unknown target or word is refused with those that there are", () => {
  assert.throws(
    () => buildsOf(["--target", "sparc"], "1.2.3"),
    /got sparc, expected all or one of/,
  );
  assert.throws(() => buildsOf(["--target"], "1.2.3"), /got nothing, expected/);
  assert.throws(() => buildsOf(["--fast"], "1.2.3"), /--fast: unknown argument/);
});

Deno.test("compile: one runtime for several targets is refused before anything is built", () => {
  const { code, stderr } = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--cached-only",
      "--allow-read",
      "--allow-env",
      "scripts/compile.ts",
      "--target",
      "all",
    ],
    env: { DENORT_BIN: "/nowhere/denort", NO_COLOR: "1" },
  }).outputSync();

  assert.equal(code, 2);
  assert.match(new TextDecoder().decode(stderr), /DENORT_BIN: is the runtime of one target/);
});
