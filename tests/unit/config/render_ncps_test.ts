import assert from "node:assert/strict";
import { convertNcps } from "../../../src/config/render_ncps.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";
import { NCPS_SETTINGS } from "../../support/ncps_settings.ts";
import { runLarder } from "../../support/run_larder.ts";

const YAML = `
cache:
  hostname: ncps.example
  max-size: 100G
  lru: { schedule: "0 3 * * *" }
  storage: { local: /var/lib/ncps }
  database-url: sqlite:/var/lib/ncps/db/db.sqlite
  upstream:
    urls: [https://cache.nixos.org, https://nix-community.cachix.org]
    public-keys: [cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY=]
  get-token: sesame
  cdc: { enabled: true, min: 16384 }
  lock: { backend: local }
server: { addr: ":8501" }
`;
const PATH = "/etc/ncps/config.yaml";

Deno.test("ncps-config: its file is larder's, and every entry has its comment", async () => {
  const env = { CACHE_MAX_SIZE: "1G", LOG_LEVEL: "debug" };
  const { toml } = await convertNcps({ path: PATH, text: YAML, env });
  const files = { "/etc/larder/cache-get-token": "sesame\n" };
  const { settings, sources } = await readSettings(inputsOf({ files, toml }));
  assert.equal(settings["cache.hostname"], "ncps.example");
  assert.equal(settings["cache.max-size"], 100 * 2 ** 30, "in ncps the file wins");
  assert.equal(settings["cache.lru-schedule-timezone"], "Local");
  assert.equal(settings["cache.storage-local"], "/var/lib/ncps");
  assert.deepEqual(settings["cache.database-url"], {
    kind: "sqlite",
    path: "/var/lib/ncps/db.sqlite",
  }, "that of ncps is db/db.sqlite");
  assert.match(toml, /\n# It belongs to ncps: .*\n# database-url =\n/);
  assert.deepEqual(settings["cache.upstream-url"].map(({ url }) => url), [
    "https://cache.nixos.org",
    "https://nix-community.cachix.org",
  ]);
  assert.equal(settings["log-level"], "debug");
  assert.deepEqual([settings["cache.get-token"]].flat().length, 1);
  assert.equal(sources["cache.get-token"].from, "file");
  assert.ok(!toml.includes("sesame"), "a secret stays out");
  const lines = toml.split("\n");
  for (const [at, line] of lines.entries()) {
    if (/^[a-z-]+ =/.test(line)) assert.match(lines[at - 1] ?? "", /^# /, line);
  }
});

Deno.test("ncps-config: settings that larder lacks are left out, named, and status 1", async () => {
  const ran = await runLarder(["import", "ncps-config", PATH], { files: { [PATH]: YAML } });
  assert.equal(ran.status, 1);
  assert.match(ran.out, /# Left out:\n# \* .*cache\.cdc\.enabled: larder has no such setting: it/);
  assert.match(ran.out, /# \* .*cache\.cdc\.min: without effect/);
  assert.match(ran.err, /^larder: .*cache\.cdc\.enabled: .*; leave it out\n$/);
  assert.ok(!ran.out.includes("lock"), "a setting that changes nothing needs no line");
});

Deno.test("ncps-config: a bad value and an unknown key are comments and problems", async () => {
  const files = { [PATH]: "cache: { max-size: big, priorty: 3 }" };
  const ran = await runLarder(["import", "ncps-config", PATH], { files });
  assert.equal(ran.status, 1);
  assert.match(ran.out, /# max-size =\n/);
  assert.match(ran.out, /# Left out:\n# \* .*cache\.priorty: unknown key/);
  assert.match(ran.err, /cache\.max-size: got "big", expected/);
  assert.match(ran.err, /cache\.priorty: unknown key/);
});

Deno.test("ncps-config: no key of ncps goes by in silence", async () => {
  for (const { key, kind } of NCPS_SETTINGS) {
    if (key === undefined) continue;
    const value = kind === "switch" ? true : "3";
    const text = JSON.stringify(nested(key.split("."), value));
    const { toml, problems } = await convertNcps({ path: "/c.json", text, env: {} });
    assert.ok(toml.includes(key) || problems.some((line) => line.includes(key)), key);
  }
});

Deno.test("ncps-config: a missing file, or one that is no YAML, is a sentence", async () => {
  const none = await runLarder(["import", "ncps-config", "/none"]);
  assert.deepEqual([none.status, none.out], [1, ""]);
  assert.match(none.err, /^larder: Cannot read \/none: /);
  const files = { [PATH]: "a: [" };
  const bad = await runLarder(["import", "ncps-config", PATH], { files });
  assert.equal(bad.status, 2);
  assert.match(bad.err, /not YAML/);
});

function nested([first = "", ...rest]: readonly string[], value: unknown): unknown {
  return { [first]: rest.length === 0 ? value : nested(rest, value) };
}
