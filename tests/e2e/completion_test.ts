import assert from "node:assert/strict";
import { COMMANDS } from "../../src/cli/commands.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { runLarder } from "../support/run_larder.ts";
import { tempFolder } from "../support/temp_folder.ts";

const NAMES = COMMANDS.map(({ name }) => name);

testUnless(programsMissing("bash"), "completion: bash completes commands and flags", async () => {
  assert.deepEqual(await completeInBash("larder", ""), [...NAMES, "help", "--help", "--version"]);
  assert.deepEqual(await completeInBash("larder", "un"), ["unpin"]);
  assert.deepEqual(await completeInBash("larder", "serve", "--cache-max"), ["--cache-max-size"]);
  assert.deepEqual(await completeInBash("larder", "warm", "--pi"), ["--pin"]);
  assert.deepEqual(await completeInBash("larder", "pins", "--cache-max"), []);
});

testUnless(programsMissing("fish"), "completion: fish completes commands and flags", async () => {
  assert.deepEqual(await completeInFish("larder unp"), ["unpin"]);
  assert.deepEqual(await completeInFish("larder serve --cache-max"), ["--cache-max-size"]);
});

testUnless(programsMissing("zsh"), "completion: zsh loads its script, and knows it", async () => {
  const script = await scriptFor("zsh");
  const words = 'autoload -U compinit && compinit -D && eval "$SCRIPT" && echo $_comps[larder]';
  assert.deepEqual(await linesOf("zsh", ["-f", "-c", words], { SCRIPT: script }), ["_larder"]);
});

testUnless(
  programsMissing("mandoc"),
  "manual page: mandoc finds nothing wrong with it",
  async () => {
    using folder = tempFolder();
    const path = `${folder.path}/larder.1`;
    const { out } = await runLarder(["man"]);
    Deno.writeTextFileSync(path, out);
    // A page without a date is the same for every build.
    const problems = await linesOf("mandoc", ["-Tlint", "-Wwarning", path]);
    assert.deepEqual(problems.filter((line) => !line.includes("missing date")), []);
    for (const name of NAMES) {
      const heading = `.SS larder ${name.replaceAll("-", "\\-")} [OPTION]...`;
      assert.ok(out.includes(heading), name);
    }
  },
);

async function scriptFor(shell: string): Promise<string> {
  const { status, out } = await runLarder(["completion", shell]);
  assert.equal(status, 0);
  return out;
}

async function completeInBash(...words: readonly string[]): Promise<readonly string[]> {
  const script = await scriptFor("bash");
  const ask = 'eval "$SCRIPT"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _larder; ' +
    'printf "%s\\n" "${COMPREPLY[@]}"';
  return await linesOf("bash", ["--norc", "-c", ask, "bash", ...words], { SCRIPT: script });
}

async function completeInFish(line: string): Promise<readonly string[]> {
  const script = await scriptFor("fish");
  const args = ["--no-config", "-c", "string join \\n $SCRIPT | source; complete -C $LINE"];
  const lines = await linesOf("fish", args, { SCRIPT: script, LINE: line });
  return lines.map((text) => text.split("\t")[0] ?? "");
}

async function linesOf(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  using home = tempFolder();
  const { stdout } = await new Deno.Command(program, {
    args: [...args],
    env: { ...env, HOME: home.path, LANG: "C.UTF-8" },
    stderr: "null",
  }).output();
  return new TextDecoder().decode(stdout).split("\n").filter((text) => text !== "");
}
