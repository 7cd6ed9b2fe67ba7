import assert from "node:assert/strict";
import { OPTION_GROUPS } from "../../../src/config/options.ts";
import { effectiveSettings } from "../../../src/config/render_settings.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import {
  type DefaultInputs,
  inputsOf,
  problemsOf,
  TOML_PATH,
} from "../../support/config_inputs.ts";

const FILE = `# laptops
alice:s3same
  bob:b0b-s3same

# the build farm, all of it
farm:f4rm, spare\r
`;
const IN_FILE = [
  { name: "alice", secret: "s3same" },
  { name: "bob", secret: "b0b-s3same" },
  { name: "farm", secret: "f4rm" },
  { secret: "spare" },
];

const resolved = (inputs: DefaultInputs) => resolveSettings(inputsOf(inputs));
const admins = (inputs: DefaultInputs) => resolved(inputs).settings["cache.admin-token"];

Deno.test("tokens: several of them, with names or without, by flag, variable and key", () => {
  const expected = [{ name: "alice", secret: "s3same" }, { secret: "spare" }];
  const flag = "--cache-admin-token";
  assert.deepEqual(admins({ args: [flag, "alice:s3same", flag, "spare"] }), expected);
  assert.deepEqual(admins({ env: { CACHE_ADMIN_TOKEN: "alice:s3same,spare" } }), expected);
  assert.deepEqual(admins({ toml: 'cache.admin-token = ["alice:s3same", "spare"]' }), expected);
  assert.equal(admins({}), undefined);
});

Deno.test("tokens: a file has one on each line, with comments, named in each source", () => {
  const files = { "/t": FILE };
  const named: readonly DefaultInputs[] = [
    { args: ["--cache-admin-token-file", "/t"] },
    { env: { CACHE_ADMIN_TOKEN_FILE: "/t" } },
    { toml: 'cache.admin-token-file = "/t"' },
  ];
  for (const inputs of named) assert.deepEqual(admins({ ...inputs, files }), IN_FILE);
});

Deno.test("tokens: systemd passes them as credentials, weaker than every other source", () => {
  const env = { CREDENTIALS_DIRECTORY: "/run/credentials/larder" };
  const files = { "/run/credentials/larder/cache-admin-token": FILE };
  const { settings, sources, warnings } = resolved({ env, files });
  assert.deepEqual(settings["cache.admin-token"], IN_FILE);
  assert.equal(sources["cache.admin-token"].from, "credential");
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    admins({ env, files, toml: 'cache.admin-token = "spare"' }),
    [{ secret: "spare" }],
  );
});

/** Invalid tokens, and the form that larder says it expected. */
const FAULTS: readonly (readonly [token: string, expected: string])[] = [
  ["ci laptop:s3same", "with a name of up to 64 letters, digits and ._@-"],
  ["ci: s3same", "of visible characters without commas"],
  ["ci:", "with a token behind the colon"],
  [":s3same", "with a name of up to 64 letters, digits and ._@-"],
  ["a:b:c", "without a second colon"],
  ["a::c", "without a second colon"],
  ["clé", "of visible characters without commas"],
  ["a b", "of visible characters without commas"],
];

Deno.test("tokens: blanks separate none, and a problem names its line and its fault", () => {
  for (const [token, expected] of FAULTS) {
    const problem = `got (hidden), expected TOKEN or NAME:TOKEN, ${expected}`;
    const files = { "/t": `alice:s3same\n\n${token}\r\nbob:b0b-s3same\n` };
    assert.deepEqual(
      problemsOf(() => resolved({ args: ["--cache-admin-token-file=/t"], files })),
      [`--cache-admin-token-file: line 3: ${problem}`],
      token,
    );
    assert.deepEqual(
      problemsOf(() => resolved({ env: { CACHE_ADMIN_TOKEN: token } })),
      [`CACHE_ADMIN_TOKEN: ${problem}`],
      token,
    );
  }
});

Deno.test("tokens: a file without any is a mistake, and opens nothing", () => {
  for (const content of ["", "\n", "# alice:s3same\n"]) {
    const [problem] = problemsOf(() =>
      resolved({ args: ["--cache-get-token-file=/t"], files: { "/t": content } })
    );
    assert.match(problem ?? "", /^--cache-get-token-file: got an empty file, expected TOKEN/);
  }
});

Deno.test("tokens: an empty variable counts as not set, with a warning that names it", () => {
  const warning = "empty, so it counts as not set; set it, or remove it";
  const variables = ["CACHE_GET_TOKEN", "CACHE_PUT_TOKEN", "CACHE_ADMIN_TOKEN_FILE"];
  const env = Object.fromEntries(variables.map((name) => [name, ""]));
  const { settings, warnings } = resolved({ env: { ...env, CACHE_PRIORITY: "" } });
  assert.equal(settings["cache.get-token"], undefined);
  assert.deepEqual([...warnings].sort(), variables.sort().map((name) => `${name}: ${warning}`));
});

Deno.test("tokens: the effective settings hide them and their names", () => {
  const { settings, sources } = resolved({ toml: 'cache.admin-token = "alice:s3same"' });
  const text = effectiveSettings(OPTION_GROUPS, { values: settings, sources });
  assert.ok(text.includes(`cache.admin-token = "(hidden)"`), text);
  assert.ok(!text.includes("s3same") && !text.includes("alice"), TOML_PATH);
});
