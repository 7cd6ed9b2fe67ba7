import assert from "node:assert/strict";
import denoJson from "../../../deno.json" with { type: "json" };
import { databaseUrl } from "../../../src/config/kinds/database_url.ts";
import { flagName, type OptionTable, variableFor } from "../../../src/config/kinds/option.ts";
import { OPTION_GROUPS, OPTIONS } from "../../../src/config/options.ts";
import { NCPS_ONLY } from "../../../src/config/options/ncps_only.ts";
import { helpText, referenceTable } from "../../../src/config/render_help.ts";
import { sampleFile } from "../../../src/config/render_toml.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { spellingsOf } from "../../../src/config/sources/found.ts";
import { inputsOf } from "../../support/config_inputs.ts";

const TABLE: OptionTable = OPTIONS;

for (const [key, option] of Object.entries(TABLE)) {
  Deno.test(`option ${key}: its row is well formed`, () => {
    assert.match(key, /^([a-z]+\.)?[a-z0-9]+(-[a-z0-9]+)*$/);
    assert.match(option.help, /^[A-Z].{0,68}[^.]$/);
    assert.match(option.details ?? "Yes.", /^[A-Za-z].{0,92}\.$/);
    assert.ok(
      option.computed === undefined || option.shown !== undefined,
      "a computed default says what it is",
    );
    assert.ok(option.computed === undefined || option.default === undefined);
    assert.ok(!option.secret || option.default === undefined, "a secret has no default");
  });

  Deno.test(`option ${key}: reading the printed value gives the default`, () => {
    if (option.default === undefined) return;
    const text = option.kind.print(option.default);

    assert.deepEqual(option.kind.parse(text), option.default);
    assert.equal(option.kind.print(option.kind.parse(text)), text);
  });
}

Deno.test("options: no two of them, and none of ncps's, share a flag, a variable or a key", () => {
  const spellings = spellingsOf({ ...TABLE, ...NCPS_ONLY });
  assert.equal(spellings.length, spellingsOf(TABLE).length + spellingsOf(NCPS_ONLY).length);
  for (const source of ["flag", "variable", "key"] as const) {
    const names = spellings.flatMap(({ option, names: { [source]: name } }) => {
      if (name === undefined) return [];
      const isSwitch = source === "flag" && option.kind.bare === "boolean";
      return isSwitch ? [name, name.replace("--", "--no-")] : [name];
    });

    assert.deepEqual(names, [...new Set(names)]);
  }
});

Deno.test("options: help and reference mention every flag, variable and key", () => {
  const help = helpText(OPTION_GROUPS);
  const reference = referenceTable(TABLE);

  for (const [key, option] of Object.entries(TABLE)) {
    for (const text of [help, reference]) {
      assert.ok(text.includes(flagName(key).slice(2)), key);
      assert.ok(text.includes(variableFor(key, option)), key);
      assert.ok(text.includes(option.help), key);
    }
    assert.ok(option.notInFile || reference.includes(`\`${key}\``), key);
  }
});

Deno.test("options: each belongs to exactly one group", () => {
  const grouped = OPTION_GROUPS.flatMap(({ options }) => Object.keys(options));

  assert.deepEqual(grouped, Object.keys(OPTIONS));
});

Deno.test("sample file: it resolves to exactly the defaults", () => {
  const sample = sampleFile(TABLE, "About");

  const { settings, sources } = resolveSettings(inputsOf({ toml: sample }));
  const defaults = resolveSettings(inputsOf()).settings;

  assert.deepEqual({ ...settings, config: undefined }, defaults);
  assert.equal(sources["cache.priority"].from, "file");
});

Deno.test("sample file: every key in it that is commented out works once it is not", () => {
  const sample = sampleFile(TABLE, "About").replaceAll(/^# ([a-z0-9-]+ = )/gm, "$1")
    .replace('"URL"', '"postgres://larder@d.example/larder"');

  const { sources } = resolveSettings(inputsOf({ toml: sample }));

  for (const [key, { from }] of Object.entries(sources)) {
    assert.equal(from, key === "config" ? "environment" : "file", key);
  }
});

Deno.test("settings: every key has the type that its kind makes", () => {
  const { settings } = resolveSettings(inputsOf({ hostname: "larder-1" }));
  // These assignments are the test: they compile only while the types are derived.
  const priority: number = settings["cache.priority"];
  const level: "debug" | "info" | "warn" | "error" = settings["log-level"];
  const urls: readonly string[] = settings["cache.upstream-url"].map(({ url }) => url);
  const keys: readonly string[] = settings["cache.upstream-public-key"].map(({ text }) => text);
  const netrc: string | undefined = settings["netrc-file"];
  const storage: string = settings["cache.storage-local"];
  const database: { kind: "sqlite"; path: string } | { kind: "postgres"; url: string } =
    settings["cache.database-url"];

  assert.deepEqual(
    { priority, level, urls, netrc, storage, database, hostname: settings["cache.hostname"] },
    {
      priority: 30,
      level: "info",
      urls: ["https://cache.nixos.org"],
      netrc: undefined,
      storage: "./larder-data",
      database: { kind: "sqlite", path: "./larder-data/db.sqlite" },
      hostname: "larder-1",
    },
  );
  assert.deepEqual(keys, ["cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY="]);
});

Deno.test("settings: without any, larder listens on port 8501 and stores in ./larder-data", () => {
  const { settings } = resolveSettings(inputsOf({}));
  assert.deepEqual(settings["server.addr"], { kind: "tcp", port: 8501 });
  assert.deepEqual(settings["cache.storage-local"], "./larder-data");
  assert.deepEqual(settings["cache.upstream-url"].map(({ url }) => url), [
    "https://cache.nixos.org",
  ]);
  // The README's command gives it no settings.
  assert.match(denoJson.tasks.serve.command, / main\.ts serve$/);
});

Deno.test("storage: the directory is systemd's, else XDG's, else one beside the process", () => {
  const storageWith = (env: Readonly<Record<string, string>>) =>
    resolveSettings(inputsOf({ env })).settings["cache.storage-local"];

  assert.equal(storageWith({ STATE_DIRECTORY: "/s/a:/s/b", XDG_STATE_HOME: "/x" }), "/s/a");
  assert.equal(storageWith({ STATE_DIRECTORY: "", XDG_STATE_HOME: "/x/" }), "/x/larder");
  assert.equal(storageWith({ XDG_STATE_HOME: "relative" }), "./larder-data");
});

Deno.test("database: it follows a storage that was moved, unless it is given itself", () => {
  const databaseWith = (...args: readonly string[]) =>
    databaseUrl.print(resolveSettings(inputsOf({ args })).settings["cache.database-url"]);

  assert.equal(databaseWith("--cache-storage-local", "/data/"), "sqlite:/data/db.sqlite");
  assert.equal(
    databaseWith("--cache-storage-local", "/data", "--cache-database-url=sqlite:/ssd/db"),
    "sqlite:/ssd/db",
  );
});
