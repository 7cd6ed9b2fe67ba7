import assert from "node:assert/strict";
import { ConfigError } from "../../../src/config/config_error.ts";
import { OPTIONS } from "../../../src/config/options.ts";
import { readSettings, type ResolvedSettings } from "../../../src/config/settings.ts";
import { type DefaultInputs, inputsOf, TOML_PATH } from "../../support/config_inputs.ts";
import { NCPS_SETTINGS, type NcpsSetting } from "../../support/ncps_settings.ts";

/** larder's names for options of the same meaning, each with a value that is not its default. */
const SAME: Readonly<Record<string, readonly [keyof typeof OPTIONS, string]>> = {
  "--cache-get-token": ["cache.get-token", "sesame"],
  "--cache-allow-delete-verb": ["cache.allow-delete-verb", "true"],
  "--cache-hostname": ["cache.hostname", "mine"],
  "--cache-storage-local": ["cache.storage-local", "/s"],
  "--cache-storage-s3-bucket": ["cache.storage-s3-bucket", "nars"],
  "--cache-storage-s3-endpoint": ["cache.storage-s3-endpoint", "https://s3.example"],
  "--cache-storage-s3-region": ["cache.storage-s3-region", "eu-1"],
  "--cache-storage-s3-access-key-id": ["cache.storage-s3-access-key-id", "id"],
  "--cache-storage-s3-secret-access-key": ["cache.storage-s3-secret-access-key", "secret"],
  "--cache-storage-s3-force-path-style": ["cache.storage-s3-force-path-style", "true"],
  "--cache-data-path": ["cache.storage-local", "/s"],
  "--cache-database-url": ["cache.database-url", "sqlite:/var/lib/ncps/db/db.sqlite"],
  "--cache-max-size": ["cache.max-size", "100G"],
  "--cache-lru-schedule": ["cache.lru-schedule", "@every 1h"],
  "--cache-lru-schedule-timezone": ["cache.lru-schedule-timezone", "Local"],
  "--cache-secret-key-path": ["cache.secret-key-path", "/k"],
  "--cache-sign-narinfo": ["cache.sign-narinfo", "false"],
  "--cache-temp-path": ["cache.temp-path", "/tmp"],
  "--cache-upstream-url": ["cache.upstream-url", "https://a.example?priority=3"],
  "--upstream-cache": ["cache.upstream-url", "https://a.example"],
  "--cache-upstream-public-key": [
    "cache.upstream-public-key",
    "b.example-1:mB9FSh9qf2dCimDSUo8Zy7bkq5CX+/rkCWyvRCYg3Fs=",
  ],
  "--upstream-public-key": [
    "cache.upstream-public-key",
    "b.example-1:mB9FSh9qf2dCimDSUo8Zy7bkq5CX+/rkCWyvRCYg3Fs=",
  ],
  "--cache-upstream-dialer-timeout": ["cache.upstream-dialer-timeout", "7s"],
  "--upstream-dialer-timeout": ["cache.upstream-dialer-timeout", "7s"],
  "--cache-upstream-response-header-timeout": ["cache.upstream-response-header-timeout", "1m0s"],
  "--upstream-response-header-timeout": ["cache.upstream-response-header-timeout", "1m0s"],
  "--netrc-file": ["netrc-file", "/n"],
  "--server-addr": ["server.addr", ":1"],
  "--analytics-reporting-enabled": ["analytics.reporting-enabled", "true"],
  "--log-level": ["log-level", "debug"],
  "--cache-allow-put-verb": ["cache.allow-put-verb", "true"],
  "--cache-require-trusted-signature": ["cache.require-trusted-signature", "true"],
  "--cache-trusted-upload-key": [
    "cache.trusted-upload-key",
    "b.example-1:mB9FSh9qf2dCimDSUo8Zy7bkq5CX+/rkCWyvRCYg3Fs=",
  ],
  "--otel-enabled": ["otel.enabled", "true"],
  "--otel-grpc-url": ["otel.grpc-url", "http://o.example:4317"],
  "--config": ["config", TOML_PATH],
  "--prometheus-enabled": ["prometheus.enabled", "true"],
  "--cache-redis-addrs": ["cache.redis-addrs", "r.example:6380"],
  "--cache-redis-username": ["cache.redis-username", "u"],
  "--cache-redis-password": ["cache.redis-password", "p"],
  "--cache-redis-db": ["cache.redis-db", "7"],
  "--cache-redis-use-tls": ["cache.redis-use-tls", "true"],
  "--cache-lock-redis-key-prefix": ["cache.lock-redis-key-prefix", "k:"],
  "--cache-lock-download-ttl": ["cache.lock-download-ttl", "7m"],
  "--cache-lock-lru-ttl": ["cache.lock-lru-ttl", "7m"],
  "--cache-lock-retry-max-attempts": ["cache.lock-retry-max-attempts", "7"],
  "--cache-lock-retry-initial-delay": ["cache.lock-retry-initial-delay", "7ms"],
  "--cache-lock-retry-max-delay": ["cache.lock-retry-max-delay", "7s"],
  "--cache-lock-retry-jitter": ["cache.lock-retry-jitter", "false"],
  "--cache-lock-allow-degraded-mode": ["cache.lock-allow-degraded-mode", "true"],
};

/** The ways to give a setting, with the name that its problem has in each. */
function waysOf(
  { flag, variable, key }: NcpsSetting,
  value: string,
): readonly (readonly [string, DefaultInputs])[] {
  const files = { [TOML_PATH]: "" };
  const ways: [string, DefaultInputs][] = [[flag, { args: [`${flag}=${value}`], files }]];
  if (variable !== undefined) ways.push([variable, { env: { [variable]: value }, files }]);
  if (key !== undefined) {
    ways.push([`${TOML_PATH}: ${key}`, { toml: `${key} = ${JSON.stringify(value)}` }]);
    // A nested document of JSON is one of YAML.
    const nested = key.split(".").reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
    const env = { NCPS_CONFIG_FILE: "/ncps/config.yaml" };
    const yaml = { "/ncps/config.yaml": JSON.stringify(nested) };
    ways.push([`/ncps/config.yaml: ${key}`, { env, files: yaml }]);
  }
  return ways;
}

async function outcomeOf(surroundings: DefaultInputs): Promise<ResolvedSettings | ConfigError> {
  try {
    return await readSettings(inputsOf(surroundings));
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

for (const setting of NCPS_SETTINGS) {
  const [key, sample] = SAME[setting.flag] ?? [];
  if (key === undefined || sample === undefined) {
    Deno.test(`ncps ${setting.flag}: it is named, with what to do instead`, async () => {
      const value = setting.kind === "switch" ? "true" : "7";
      for (const [name, surroundings] of waysOf(setting, value)) {
        const outcome = await outcomeOf(surroundings);
        const lines = outcome instanceof ConfigError ? outcome.problems : outcome.warnings;

        const said = lines.filter((line) => line.startsWith(`${name}: `)).join("\n");
        assert.match(said, /: (larder has no such setting|without effect): [^\n]{12,}$/, name);
      }
    });
  } else {
    Deno.test(`ncps ${setting.flag}: all its spellings set ${key}`, async () => {
      for (const [name, surroundings] of waysOf(setting, sample)) {
        const outcome = await outcomeOf(surroundings);
        assert.ok(!(outcome instanceof ConfigError), String(outcome));

        assert.deepEqual(outcome.settings[key], OPTIONS[key].kind.parse(sample), name);
        assert.notEqual(outcome.sources[key].from, "default", name);
        assert.ok(outcome.warnings.every((line) => !line.includes("unknown")), name);
      }
    });
  }
}

const problemsOf = async (surroundings: DefaultInputs) => {
  const outcome = await outcomeOf(surroundings);
  return outcome instanceof ConfigError ? outcome.problems : [];
};

Deno.test("ncps: a setting that is off, empty or larder's own way is no problem", async () => {
  const yaml = `
analytics: { reporting: { enabled: false } }
cache:
  allow-put-verb: false
  get-token: ""
  secret-key-path: ""
  trusted-upload-keys: []
  cdc: { enabled: false }
  database:
    pool:
    # max-open-conns: 25
  lock: { backend: local }
  storage:
    local: "/var/lib/ncps"
  upstream:
    urls:
      - https://cache.nixos.org
      - https://nix-community.cachix.org
`;
  const files = { "/c.yaml": yaml };
  const { settings, warnings } = await readSettings(
    inputsOf({ args: ["--config", "/c.yaml"], files }),
  );

  assert.deepEqual(warnings, []);
  assert.equal(settings["cache.storage-local"], "/var/lib/ncps");
  assert.deepEqual(settings["cache.upstream-url"].map(({ url }) => url), [
    "https://cache.nixos.org",
    "https://nix-community.cachix.org",
  ]);
});

Deno.test("ncps: moot settings are one warning for each reason and file", async () => {
  const yaml = "cache: { cdc: { min: 1, max: 2 }, redis: { pool-size: 3 } }";
  const { warnings } = await readSettings(
    inputsOf({ args: ["--config=/c.yaml", "--use-xz-binary"], files: { "/c.yaml": yaml } }),
  );

  assert.deepEqual(warnings, [
    "/c.yaml: cache.cdc.min, cache.cdc.max: without effect: " +
    "it is about chunks, and larder keeps whole NAR files",
    "/c.yaml: cache.redis.pool-size: without effect: larder uses one connection to Redis",
    "--use-xz-binary: without effect: larder decompresses xz by itself",
  ]);
});

Deno.test("ncps: two spellings in one source may agree, and must not differ", async () => {
  const env = { CACHE_UPSTREAM_URL: "https://a", CACHE_UPSTREAM_URLS: "https://b" };
  assert.deepEqual(await problemsOf({ env }), [
    'CACHE_UPSTREAM_URL and CACHE_UPSTREAM_URLS: got "https://a" and "https://b", ' +
    "expected only one",
  ]);
  assert.deepEqual(
    await problemsOf({ env: { ...env, CACHE_UPSTREAM_URLS: "https://a" } }),
    [],
  );
  const toml = '[cache]\ntemp-path = "/a"\nupstream.dialer-timeout = "1s"\n' +
    'upstream-dialer-timeout = "2s"';
  assert.deepEqual(await problemsOf({ toml }), [
    `${TOML_PATH}: cache.upstream.dialer-timeout and ${TOML_PATH}: ` +
    'cache.upstream-dialer-timeout: got "1s" and "2s", expected only one',
  ]);
});

Deno.test("ncps: its file is read if an option names it, else a hint names it", async () => {
  const place = "/home/u/.config/ncps/config.yaml";
  const files = { [place]: "cache: { hostname: theirs }" };
  const { settings, warnings } = await readSettings(inputsOf({ env: { HOME: "/home/u" }, files }));

  assert.equal(settings["cache.hostname"], "host");
  assert.deepEqual(warnings, [`${place}: is not read; give it as --config to use it`]);
  const named = await readSettings(inputsOf({ env: { NCPS_CONFIG_FILE: place }, files }));
  assert.deepEqual([named.settings["cache.hostname"], named.warnings], ["theirs", []]);
});

Deno.test("ncps: a MySQL URL is refused with the expected form, without its password", async () => {
  const env = { CACHE_DATABASE_URL: "mysql://u:hush@db:3306/ncps" };
  const [problem = ""] = await problemsOf({ env });

  assert.match(problem, /^CACHE_DATABASE_URL: got "[^"]*@db[^"]*", expected sqlite: and the path/);
  assert.ok(!problem.includes("hush"), problem);
});
