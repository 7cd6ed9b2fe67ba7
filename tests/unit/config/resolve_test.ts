import assert from "node:assert/strict";
import { listOf } from "../../../src/config/kinds/list.ts";
import { boolean, integer, text } from "../../../src/config/kinds/plain.ts";
import type { OptionTable } from "../../../src/config/kinds/option.ts";
import { resolve } from "../../../src/config/resolve.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import {
  type DefaultInputs,
  inputsOf,
  problemsOf,
  TOML_PATH,
} from "../../support/config_inputs.ts";

const COUNT = { flag: "--a-count", variable: "OLD", key: "old" };
const BROAD = { flag: "--a-broad" };

const TABLE = {
  "config": { kind: text, help: "File", variable: "LARDER_CONFIG_FILE", notInFile: true },
  "a.number": { kind: integer(1, 9), default: 5, help: "Number", also: [COUNT] },
  "a.words": { kind: listOf(text), default: ["x"], help: "Words" },
  "a.wide": { kind: boolean, default: false, help: "Wide", also: [BROAD] },
  "a.token": { kind: text, help: "Token", secret: true },
} as const satisfies OptionTable;

function resolved(surroundings: DefaultInputs) {
  return resolve(TABLE, inputsOf(surroundings));
}

function problems(surroundings: DefaultInputs): readonly string[] {
  return problemsOf(() => resolved(surroundings));
}

Deno.test("precedence: flag, environment, file, default, each with its source", () => {
  const toml = "[a]\nnumber = 2";
  const env = { A_NUMBER: "3" };
  const args = ["--a-number=4"];
  const outcome = (surroundings: DefaultInputs) => {
    const { settings, sources } = resolved(surroundings);
    return [settings["a.number"], sources["a.number"].from, sources["a.number"].name];
  };

  assert.deepEqual(outcome({ toml, env, args }), [4, "flag", "--a-number"]);
  assert.deepEqual(outcome({ toml, env }), [3, "environment", "A_NUMBER"]);
  assert.deepEqual(outcome({ toml }), [2, "file", TOML_PATH]);
  assert.deepEqual(outcome({}), [5, "default", ""]);
});

Deno.test("environment: an empty variable counts as not set", () => {
  assert.equal(resolved({ env: { A_NUMBER: "", LARDER_CONFIG_FILE: "" } }).settings["a.number"], 5);
});

Deno.test("flags: a value stands behind a space or an equals sign", () => {
  assert.equal(resolved({ args: ["--a-number", "7"] }).settings["a.number"], 7);
  assert.equal(resolved({ args: ["--a-token=x=y"] }).settings["a.token"], "x=y");
});

Deno.test("booleans: every way to write them", () => {
  const cases: readonly (readonly [DefaultInputs, boolean])[] = [
    [{ args: ["--a-wide"] }, true],
    [{ args: ["--a-wide=true"] }, true],
    [{ args: ["--a-wide=false"] }, false],
    [{ args: ["--no-a-wide"], env: { A_WIDE: "true" } }, false],
    [{ env: { A_WIDE: "1" } }, true],
    [{ env: { A_WIDE: "0" }, toml: "a.wide = true" }, false],
    [{ toml: "a.wide = true" }, true],
  ];
  for (const [surroundings, expected] of cases) {
    assert.equal(resolved(surroundings).settings["a.wide"], expected, JSON.stringify(surroundings));
  }
});

Deno.test("lists: a higher source replaces the list of a lower one", () => {
  const toml = 'a.words = ["t"]';
  const env = { A_WORDS: "e,f g" };
  const args = ["--a-words", "h", "--a-words=i"];
  const words = (surroundings: DefaultInputs) => resolved(surroundings).settings["a.words"];

  assert.deepEqual(words({ toml, env, args }), ["h", "i"]);
  assert.deepEqual(words({ toml, env }), ["e", "f", "g"]);
  assert.deepEqual(words({ toml }), ["t"]);
  assert.deepEqual(words({ toml: 'a.words = "one"' }), ["one"]);
  assert.deepEqual(words({ toml: "a.words = []" }), []);
  assert.deepEqual(words({}), ["x"]);
});

Deno.test("lists: nothing but separators is a mistake, not an empty list", () => {
  assert.deepEqual(problems({ args: ["--a-words="] }), [
    '--a-words: got "", expected some text',
  ]);
  assert.deepEqual(problems({ env: { A_WORDS: "," } }), [
    `A_WORDS: got ",", expected some text`,
  ]);
});

Deno.test("problems: all are reported at once, each in the spelling that was used", () => {
  const found = problems({
    args: ["--a-wide=yes", "--a-nmber=3", "stray"],
    env: { A_NUMBER: "ten" },
    toml: 'a.words = ["ok", 5]\nb = 1',
  });

  assert.deepEqual(found, [
    "--a-nmber: unknown flag, did you mean --a-number?",
    '"stray": unexpected argument',
    `${TOML_PATH}: b: unknown key`,
    'A_NUMBER: got "ten", expected a whole number from 1 to 9',
    `${TOML_PATH}: a.words: got 5, expected a string in quotes`,
    '--a-wide: got "yes", expected true or false',
  ]);
});

Deno.test("flags: a flag that needs a value does not take the next flag for it", () => {
  assert.deepEqual(problems({ args: ["--a-number", "--a-wide"] }), [
    "--a-number: got nothing, expected a whole number from 1 to 9",
  ]);
  assert.deepEqual(problems({ args: ["--a-number"] }), [
    "--a-number: got nothing, expected a whole number from 1 to 9",
  ]);
});

Deno.test("flags: the value of an unknown flag is not a problem of its own", () => {
  assert.deepEqual(problems({ args: ["--no-such", "word", "--no-a-number", "1"] }), [
    "--no-such: unknown flag",
    "--no-a-number: unknown flag",
  ]);
});

Deno.test("flags: the same flag twice is a problem, unless it is a list", () => {
  assert.deepEqual(problems({ args: ["--a-number=1", "--a-number=2"] }), [
    '--a-number: got "1" and "2", expected only one',
  ]);
  assert.deepEqual(problems({ args: ["--a-wide", "--no-a-wide"] }), [
    '--a-wide and --no-a-wide: got "true" and "false", expected only one',
  ]);
  assert.deepEqual(problems({ args: ["--no-a-wide=true"] }), [
    '--no-a-wide: got "true", expected no value',
  ]);
});

Deno.test("aliases: they work in each source, a switch's denial too", () => {
  const cases: readonly DefaultInputs[] = [
    { args: ["--a-count=7"] },
    { env: { OLD: "7" } },
    { toml: "old = 7" },
  ];
  for (const surroundings of cases) assert.equal(resolved(surroundings).settings["a.number"], 7);
  const { settings } = resolved({ args: ["--no-a-broad"], env: { A_WIDE: "1" } });
  assert.equal(settings["a.wide"], false);
});

Deno.test("aliases: where one source gives the option's own name too, neither wins", () => {
  assert.deepEqual(problems({ args: ["--a-count=1", "--a-number=2"] }), [
    '--a-count and --a-number: got "1" and "2", expected only one',
  ]);
});

Deno.test("problems: an expected value is shown whole, though it looks like a URL's secret", () => {
  const args = ["--cache-upstream-url=ftp://u:hush@a.example?token=hush"];
  const [problem = ""] = problemsOf(() => resolveSettings(inputsOf({ args })));

  assert.match(problem, /expected [^]*https:\/\/cache\.example\.org\?priority=10$/);
  assert.ok(!problem.includes("hush"), problem);
});

Deno.test("problems: a bad value that a stronger source overrides is one all the same", () => {
  const all = { args: ["--a-number=3"], env: { A_NUMBER: "ten" }, toml: "a.number = 99" };

  assert.deepEqual(problems(all), [
    'A_NUMBER: got "ten", expected a whole number from 1 to 9',
    `${TOML_PATH}: a.number: got 99, expected a whole number from 1 to 9`,
  ]);
});

Deno.test("problems: typed text can neither break the line nor steer a terminal", () => {
  assert.deepEqual(problems({ args: ["--x\n\x1b[2J\x7f"] }), [
    "--x\\u000a\\u001b[2J\\u007f: unknown flag",
  ]);
});

Deno.test("rules: an upstream that is listed twice is a problem, credentials hidden", () => {
  const args = ["--cache-upstream-url=https://u:p@a/,https://u:p@a?priority=2"];

  assert.deepEqual(problemsOf(() => resolveSettings(inputsOf({ args }))), [
    '--cache-upstream-url: got "https://(hidden)@a" twice, expected it once',
  ]);
});

Deno.test("rules: an S3 access key and its secret go together", () => {
  const args = ["--cache-storage-s3-bucket=nars", "--cache-storage-s3-access-key-id=a"];

  const problems = problemsOf(() => resolveSettings(inputsOf({ args })));

  assert.match(problems.join("\n"), /got a key without its secret, expected both or none/);
});

Deno.test("rules: redirects to the S3 store need a bucket", () => {
  const args = ["--cache-storage-s3-redirect"];

  const problems = problemsOf(() => resolveSettings(inputsOf({ args })));

  assert.match(problems.join("\n"), /^--cache-storage-s3-redirect: got true without/);
});

Deno.test("rules: other machines cannot be offered the downloads of an SQLite file", () => {
  const elsewhere = "--cache-advertise-url=http://larder-1.example:8501";
  const args = [elsewhere, "--cache-redis-addrs=r.example"];

  const problems = problemsOf(() => resolveSettings(inputsOf({ args })));

  const expected = "expected postgres:// in cache.database-url, or an address of this machine";
  assert.deepEqual(problems, [
    "--cache-advertise-url: got http://larder-1.example:8501 with an SQLite file, " +
    `which machines cannot share, ${expected}`,
  ]);
  resolveSettings(inputsOf({
    args: [...args, "--cache-database-url=postgres://larder@d.example/larder"],
  }));
  for (const host of ["localhost", "127.0.0.1", "[::1]", "host", "[fd00::1]"]) {
    const here = [`--cache-advertise-url=http://${host}:8501`, "--server-addr=[fd00::1]:8501"];
    resolveSettings(inputsOf({ args: [...here, "--cache-redis-addrs=r.example"] }));
  }
});

Deno.test("rules: a certificate and its key go together, and not with a Unix socket", () => {
  const problemOf = (...args: string[]) =>
    problemsOf(() => resolveSettings(inputsOf({ args }))).join("\n");
  assert.match(
    problemOf("--server-tls-cert=a"),
    /^--server-tls-cert: got a certificate without a key/,
  );
  assert.match(problemOf("--server-tls-key=a"), /got a key without a certificate/);
  const both = ["--server-tls-cert=a", "--server-tls-key=b"];
  assert.match(problemOf(...both, "--server-addr=unix:/x"), /for a Unix socket, expected/);
  const { settings } = resolveSettings(inputsOf({ args: both }));
  assert.deepEqual([settings["server.tls-cert"], settings["server.tls-key"]], ["a", "b"]);
});

Deno.test("rules: signatures cannot be required without a key", () => {
  const toml = "cache.upstream-public-key = []";

  assert.deepEqual(problemsOf(() => resolveSettings(inputsOf({ toml }))), [
    `${TOML_PATH}: cache.upstream-public-key: got no key, ` +
    "expected one while cache.require-upstream-signature is true",
  ]);
  const args = ["--no-cache-require-upstream-signature"];
  assert.deepEqual(
    resolveSettings(inputsOf({ toml, args })).settings["cache.upstream-public-key"],
    [],
  );
});

Deno.test("computed defaults: one that cannot be used says which option to set", () => {
  assert.deepEqual(problemsOf(() => resolveSettings(inputsOf({ hostname: "(none)" }))), [
    '--cache-hostname: not set, and its default would be "(none)", ' +
    "expected a name of letters, digits, dots, dashes and underscores",
  ]);
  assert.deepEqual(
    problemsOf(() => resolveSettings(inputsOf({ hostname: "", args: ["--cache-hostname=a b"] }))),
    [
      '--cache-hostname: got "a b", ' +
      "expected a name of letters, digits, dots, dashes and underscores",
    ],
  );
  const args = ["--cache-hostname=mine"];
  assert.equal(
    resolveSettings(inputsOf({ hostname: "(none)", args })).settings["cache.hostname"],
    "mine",
  );
});
