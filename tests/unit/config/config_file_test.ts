import assert from "node:assert/strict";
import { effectiveSettings } from "../../../src/config/render_settings.ts";
import { OPTION_GROUPS } from "../../../src/config/options.ts";
import { readSettings, resolveSettings } from "../../../src/config/settings.ts";
import { inputsOf, problemsOf, TOML_PATH } from "../../support/config_inputs.ts";

const problems = (toml: string) => problemsOf(() => resolveSettings(inputsOf({ toml })));

Deno.test("configuration file: --config, its variable, XDG's place, /etc, in this order", () => {
  const priorityWith = (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const files = {
      "/flag.toml": "cache.priority = 1",
      "/variable.toml": "cache.priority = 2",
      "/xdg/larder/config.toml": "cache.priority = 3",
      "/etc/larder/config.toml": "cache.priority = 4",
      "/home/u/.config/larder/config.toml": "cache.priority = 5",
    };
    return resolveSettings(inputsOf({ args, env, files })).settings["cache.priority"];
  };
  const variable = { LARDER_CONFIG_FILE: "/variable.toml" };

  assert.equal(priorityWith(["--config", "/flag.toml"], variable), 1);
  assert.equal(priorityWith([], { ...variable, XDG_CONFIG_HOME: "/xdg" }), 2);
  assert.equal(priorityWith([], { XDG_CONFIG_HOME: "/xdg" }), 3);
  assert.equal(priorityWith([], { XDG_CONFIG_HOME: "/other" }), 4);
  assert.equal(priorityWith([], { XDG_CONFIG_HOME: "/other", HOME: "/home/u" }), 4);
  assert.equal(priorityWith([], { HOME: "/home/u/" }), 5);
  assert.equal(priorityWith([], { XDG_CONFIG_HOME: "relative", HOME: "/home/u" }), 5);
  assert.equal(priorityWith([], {}), 4);
});

Deno.test("configuration file: one that is named must be readable", () => {
  const withInputs = (args: readonly string[], env: Readonly<Record<string, string>>) =>
    problemsOf(() => resolveSettings(inputsOf({ args, env })));

  assert.deepEqual(withInputs(["--config=/none.toml"], {}), [
    '--config: got "/none.toml", expected a file that can be read (No such file)',
  ]);
  assert.deepEqual(withInputs([], { LARDER_CONFIG_FILE: "/none.toml" }), [
    'LARDER_CONFIG_FILE: got "/none.toml", expected a file that can be read (No such file)',
  ]);
});

Deno.test("configuration file: tables, dotted keys and numbers without quotes are read", () => {
  const toml = `
    log-level = "debug"
    server.addr = "[::1]:0"
    [cache]
    priority = 41
    sign-narinfo = false
    negative-ttl = "2m"
    upstream-url = ["https://a.example?priority=1", "https://b.example"]
  `;

  const { settings } = resolveSettings(inputsOf({ toml }));

  assert.equal(settings["log-level"], "debug");
  assert.deepEqual(settings["server.addr"], { kind: "tcp", hostname: "::1", port: 0 });
  assert.equal(settings["cache.priority"], 41);
  assert.equal(settings["cache.sign-narinfo"], false);
  assert.equal(settings["cache.negative-ttl"], 120_000);
  assert.deepEqual(settings["cache.upstream-url"], [
    { url: "https://a.example", priority: 1 },
    { url: "https://b.example" },
  ]);
});

Deno.test("configuration file: an unknown key proposes the nearest, wherever it stands", () => {
  assert.deepEqual(problems('[cache]\nprioritie = 3\nhost-name = "x"'), [
    `${TOML_PATH}: cache.prioritie: unknown key, did you mean cache.priority?`,
    `${TOML_PATH}: cache.host-name: unknown key, did you mean cache.hostname?`,
  ]);
  assert.deepEqual(problems('[upstream]\nurl = "https://a.example"'), [
    `${TOML_PATH}: upstream.url: unknown key, did you mean cache.upstream-url?`,
  ]);
  assert.deepEqual(problems("[cache]\nfrobnicate = 1"), [
    `${TOML_PATH}: cache.frobnicate: unknown key`,
  ]);
  assert.deepEqual(problems('config = "/x"\n__proto__ = 1\nzzz.zzz.zzz = 1'), [
    `${TOML_PATH}: config: unknown key`,
    `${TOML_PATH}: __proto__: unknown key`,
    `${TOML_PATH}: zzz.zzz.zzz: unknown key`,
  ]);
});

Deno.test("configuration file: a value of the wrong type is a problem", () => {
  const cases: Readonly<Record<string, string>> = {
    "cache.priority = true": "got true, expected a whole number from 1 to 2147483647",
    "cache.priority = 1.5": "got 1.5, expected a whole number from 1 to 2147483647",
    "cache.sign-narinfo = 1": "got 1, expected a boolean",
    "netrc-file = 5": "got 5, expected a string in quotes",
    'netrc-file = ["/a"]': 'got ["/a"], expected a string in quotes',
    "log-level = 2026-01-01": 'got "2026-01-01", expected one of debug, info, warn, error',
    "cache.negative-ttl = 60": "got 60, expected a duration such as 30s, 5m or 1h30m, or 0s",
  };
  for (const [toml, expected] of Object.entries(cases)) {
    const key = toml.slice(0, toml.indexOf(" "));
    assert.deepEqual(problems(toml), [`${TOML_PATH}: ${key}: ${expected}`]);
  }
});

Deno.test("configuration file: a TOML error is named with line and column", () => {
  assert.match(problems("a = 1\nb = = 2").join("\n"), /^\/conf\/larder\.toml:2:\d+: not TOML: .+$/);
});

Deno.test("configuration file: YAML and JSON are read like TOML", async () => {
  const yaml = "log-level: debug\ncache:\n  priority: 41\n  sign-narinfo: false\n" +
    "  upstream-url: [https://a.example, https://b.example]\nserver: { addr: ':1' }\n";
  const json = '{"log-level":"debug","cache":{"priority":41,"sign-narinfo":false,' +
    '"upstream-url":["https://a.example","https://b.example"]},"server":{"addr":":1"}}';
  for (const [path, text] of [["/c.yaml", yaml], ["/c.YML", yaml], ["/c.json", json]] as const) {
    const inputs = inputsOf({ args: ["--config", path], files: { [path]: text } });
    const { settings, sources } = await readSettings(inputs);

    assert.equal(settings["log-level"], "debug");
    assert.equal(settings["cache.priority"], 41);
    assert.equal(settings["cache.sign-narinfo"], false);
    assert.equal(settings["cache.upstream-url"].length, 2);
    assert.deepEqual(settings["server.addr"], { kind: "tcp", port: 1 });
    assert.deepEqual(sources["cache.priority"], { from: "file", name: path });
  }
});

Deno.test("configuration file: a YAML error is named by its line, not quoted", async () => {
  const laughs = Array.from({ length: 9 }, (_, at) => {
    const aliases = Array(9).fill(`*a${at}`);
    return `a${at + 1}: &a${at + 1} [${aliases}]`;
  });
  const cases: Readonly<Record<string, RegExp>> = {
    "a: 1\nb: [hush\n": /^\/c\.yaml:3:1: not YAML: [^\n]+$/,
    "a: 1\na: hush": /^\/c\.yaml:2:1: not YAML: [^\n]*unique[^\n]*$/,
    "a: !hush hush": /^\/c\.yaml:1:4: not YAML: /,
    "- hush": /^\/c\.yaml: got a list, expected keys with values$/,
    "hush": /^\/c\.yaml: got a string, expected keys with values$/,
    "cache.nothing: 1\ncache:\n  nix:": /^\/c\.yaml: cache\.nothing: unknown key\n.*cache\.nix: /,
    [["a0: &a0 [x]", ...laughs].join("\n")]: /not YAML: Excessive alias count/,
  };
  for (const [text, expected] of Object.entries(cases)) {
    const inputs = inputsOf({ args: ["--config=/c.yaml"], files: { "/c.yaml": text } });
    const error = await readSettings(inputs).catch((thrown) => thrown);

    assert.match(String(error.message), expected, text);
    assert.ok(text.includes("!hush") || !String(error.message).includes("hush"), error.message);
  }
});

Deno.test("configuration file: an empty value counts as unset, as an empty variable", async () => {
  assert.deepEqual(resolveSettings(inputsOf({ toml: 'netrc-file = ""' })).warnings, []);
  for (
    const text of ["", "# nothing\n", "cache:\n", "{}", "cache: { hostname: , netrc-file: '' }"]
  ) {
    const inputs = inputsOf({ args: ["--config=/c.yaml"], files: { "/c.yaml": text } });
    assert.equal((await readSettings(inputs)).settings["cache.hostname"], "host");
  }
});

Deno.test("effective settings: saved as a file, they give the same settings", () => {
  const args = ["--cache-priority=3", "--cache-upstream-url=https://a.example/?priority=2"];
  const env = { CACHE_NEGATIVE_TTL: "0s", NETRC_FILE: '/a "b"\\\t' };
  const first = resolveSettings(inputsOf({ args, env, toml: 'log-level = "warn"' }));
  const { settings: values, sources } = first;

  const printed = effectiveSettings(OPTION_GROUPS, { values, sources });
  const again = resolveSettings(inputsOf({ toml: printed }));

  assert.deepEqual(again.settings, values);
  assert.match(printed, /^cache\.priority = 3 +# flag --cache-priority$/m);
  assert.match(printed, /^cache\.negative-ttl = "0s" +# environment CACHE_NEGATIVE_TTL$/m);
  assert.match(printed, /^log-level = "warn" +# file \/conf\/larder\.toml$/m);
  assert.match(printed, /^cache\.sign-narinfo = true +# default$/m);
});

Deno.test("effective settings: credentials are hidden, and refused when they come back", () => {
  const args = ["--cache-upstream-url=https://u:hush@a.example"];
  const { settings: values, sources } = resolveSettings(inputsOf({ args }));

  const printed = effectiveSettings(OPTION_GROUPS, { values, sources });

  assert.ok(!printed.includes("hush"));
  assert.deepEqual(problems(printed), [
    `${TOML_PATH}: cache.upstream-url: got "https://(hidden)@a.example", ` +
    "expected the user and password themselves where (hidden) stands",
  ]);
});
