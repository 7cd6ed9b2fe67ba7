import assert from "node:assert/strict";
import { noOperands, parseArguments } from "../../../src/cli/flags.ts";
import { boolean, choice } from "../../../src/config/kinds/plain.ts";
import { size } from "../../../src/config/kinds/size.ts";
import { HIDDEN } from "../../../src/config/kinds/option.ts";
import { problemsOf } from "../../support/config_inputs.ts";

const TABLE = {
  colour: { kind: choice("red", "blue"), default: "red", variable: "COLOUR", help: "" },
  limit: { kind: size, help: "" },
  dry: { kind: boolean, default: false, help: "" },
  token: { kind: choice("sesame"), secret: true, variable: "TOKEN", help: "" },
} as const;

interface Given {
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
}

function read(words: string, { env = {}, files = {} }: Given = {}) {
  const args = words.split(" ").filter((word) => word !== "");
  const readTextFile = (path: string) => files[path] ?? assert.fail(`No file ${path}`);
  return parseArguments(TABLE, { args, env, readTextFile });
}

Deno.test("command flags: they stand anywhere among the words, and behind -- are none", () => {
  const { flags, rest } = read("a --colour=blue b --dry --limit 2K c -- --dry");

  assert.deepEqual(flags, { colour: "blue", limit: 2048, dry: true, token: undefined });
  assert.deepEqual(rest, ["a", "b", "c", "--dry"]);
});

Deno.test("command flags: a flag wins over its variable; others have no variable", () => {
  const env = { COLOUR: "blue", LIMIT: "1K", DRY: "true" };

  assert.deepEqual(read("", { env }).flags, {
    colour: "blue",
    limit: undefined,
    dry: false,
    token: undefined,
  });
  assert.equal(read("--colour red", { env }).flags.colour, "red");
});

Deno.test("command flags: a switch takes =true, =false and --no-", () => {
  for (const [words, dry] of [["--dry=true", true], ["--dry=false", false], ["--no-dry", false]]) {
    assert.equal(read(String(words)).flags.dry, dry);
  }
});

Deno.test("command flags: a secret comes from a file, and no problem shows it", () => {
  assert.equal(read("--token-file /f", { files: { "/f": "sesame\n" } }).flags.token, "sesame");
  for (
    const problems of [
      problemsOf(() => read("--token hush")),
      problemsOf(() => read("", { env: { TOKEN: "hush" } })),
      problemsOf(() => read("--token-file /f", { files: { "/f": "hush\n" } })),
    ]
  ) {
    assert.equal(problems.length, 1);
    assert.match(problems[0] ?? "", /token/i);
    assert.ok(problems[0]?.includes(HIDDEN) && !problems[0].includes("hush"), problems[0]);
  }
  const files = { "/f": "sesame" };
  assert.deepEqual(problemsOf(() => read("--token sesame --token-file /f", { files })), [
    `--token and --token-file: got ${HIDDEN} and "/f", expected only one`,
  ]);
});

for (
  const [words, ...expected] of [
    ["--color blue", "--color: unknown flag, did you mean --colour?"],
    ["--colour green", '--colour: got "green", expected one of red, blue'],
    ["--colour", "--colour: got nothing, expected one of red, blue"],
    ["--colour --dry", "--colour: got nothing, expected one of red, blue"],
    ["--colour red --colour blue", '--colour: got "red" and "blue", expected only one'],
    ["--dry=yes", '--dry: got "yes", expected true or false'],
    ["--no-colour", "--no-colour: unknown flag"],
    ["-x --limit=10X", "-x: unknown flag", '--limit: got "10X", expected a size such as'],
    ["--token-file", "--token-file: got nothing, expected a path"],
  ] as const
) {
  Deno.test(`command flags: each mistake in "${words}" is named`, () => {
    const problems = problemsOf(() => read(words));

    assert.equal(problems.length, expected.length, problems.join("\n"));
    for (const text of expected) assert.ok(problems.some((one) => one.startsWith(text)), text);
  });
}

Deno.test("command flags: a command without arguments refuses them by name", () => {
  assert.deepEqual(problemsOf(() => noOperands(["a", "b"])), [
    '"a": unexpected argument',
    '"b": unexpected argument',
  ]);
});
