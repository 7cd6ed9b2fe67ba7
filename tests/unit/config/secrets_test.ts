import assert from "node:assert/strict";
import { listOf } from "../../../src/config/kinds/list.ts";
import { integer, text } from "../../../src/config/kinds/plain.ts";
import type { OptionTable } from "../../../src/config/kinds/option.ts";
import { helpText, referenceTable } from "../../../src/config/render_help.ts";
import { effectiveSettings } from "../../../src/config/render_settings.ts";
import { resolve } from "../../../src/config/resolve.ts";
import {
  type DefaultInputs,
  inputsOf,
  problemsOf,
  TOML_PATH,
} from "../../support/config_inputs.ts";

const TABLE = {
  "config": { kind: text, help: "File", variable: "LARDER_CONFIG_FILE", notInFile: true },
  "a.token": { kind: text, help: "Token", secret: true, also: [{ flag: "--a-key" }] },
  "a.pin": { kind: integer(1, 9), help: "Pin", secret: true },
  "a.many": { kind: listOf(text), help: "Many", secret: true },
} as const satisfies OptionTable;

const FILES = { "/t1": "one\n", "/t2": "two\r\n" };

function resolved(surroundings: DefaultInputs) {
  return resolve(TABLE, inputsOf({ files: FILES, ...surroundings }));
}

function problems(surroundings: DefaultInputs): readonly string[] {
  return problemsOf(() => resolved(surroundings));
}

Deno.test("secrets: a flag can name a file, and wins over the other sources", () => {
  const outcome = (surroundings: DefaultInputs) => {
    const { settings, sources } = resolved(surroundings);
    return [settings["a.token"], sources["a.token"].from, sources["a.token"].name];
  };
  assert.deepEqual(
    outcome({ args: ["--a-token-file", "/t1"], env: { A_TOKEN: "env" } }),
    ["one", "flag", "--a-token-file"],
  );
  assert.deepEqual(outcome({ args: ["--a-token-file=/t2"] }), ["two", "flag", "--a-token-file"]);
  assert.deepEqual(outcome({ env: { A_TOKEN: "env" } }), ["env", "environment", "A_TOKEN"]);
  assert.deepEqual(outcome({ toml: 'a.token = "t"' }), ["t", "file", TOML_PATH]);
  assert.deepEqual(outcome({}), [undefined, "default", ""]);
});

Deno.test("secrets: a file may hold a list, and only its last line break is no part of it", () => {
  const files = { "/many": "a b\nc\n", "/token": " x\n\n" };

  const { settings } = resolved({ files, args: ["--a-many-file=/many", "--a-token-file=/token"] });

  assert.deepEqual(settings["a.many"], ["a", "b", "c"]);
  assert.equal(settings["a.token"], " x\n");
});

Deno.test("secrets: no problem shows them, whichever way they came", () => {
  const files = { "/pin": "8765432\n", "/empty": "" };

  assert.deepEqual(problems({ args: ["--a-pin=8765432"] }), [
    "--a-pin: got (hidden), expected a whole number from 1 to 9",
  ]);
  assert.deepEqual(problems({ files, args: ["--a-pin-file=/pin", "--a-token-file=/empty"] }), [
    "--a-token-file: got an empty file, expected some text",
    "--a-pin-file: got (hidden), expected a whole number from 1 to 9",
  ]);
  assert.deepEqual(problems({ args: ["--a-token=x", "--a-token-file=/t1"] }), [
    '--a-token and --a-token-file: got (hidden) and "/t1", expected only one',
  ]);
  assert.deepEqual(problems({ args: ["--a-token-file=/none"] }), [
    '--a-token-file: got "/none", expected a file that can be read (No such file)',
  ]);
});

Deno.test("secrets: a file that is no TOML is not quoted", () => {
  const [problem = ""] = problems({ toml: 'a.token = "hush\n' });

  assert.match(problem, new RegExp(`^${TOML_PATH}:1:\\d+: not TOML: `));
  assert.ok(!problem.includes("hush"));
});

Deno.test("secrets: an alias has a file too", () => {
  assert.equal(resolved({ args: ["--a-key-file=/t1"] }).settings["a.token"], "one");
});

Deno.test("secrets: effective settings hide them, and (hidden) is refused as a value", () => {
  const { settings, sources } = resolved({ args: ["--a-token=hush", "--a-many=hush"] });

  const printed = effectiveSettings([{ options: TABLE }], { values: settings, sources });

  assert.ok(!printed.includes("hush"), printed);
  assert.match(printed, /^a\.token = "\(hidden\)" +# flag --a-token$/m);
  assert.deepEqual(problems({ toml: printed }), [
    `${TOML_PATH}: a.token: got (hidden), expected the secret itself, ` +
    "which is only shown as (hidden)",
    `${TOML_PATH}: a.many: got (hidden), expected the secret itself, ` +
    "which is only shown as (hidden)",
  ]);
});

Deno.test("secrets: help and reference show no default of theirs", () => {
  const table: OptionTable = { ...TABLE, "a.token": { ...TABLE["a.token"], default: "hush" } };

  const shown = helpText([{ title: "T", options: table }]) + referenceTable(table);

  assert.ok(!shown.includes("hush"));
  assert.ok(shown.includes("--a-token-file PATH"));
});
