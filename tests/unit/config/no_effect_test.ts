import assert from "node:assert/strict";
import { flagName } from "../../../src/config/kinds/option.ts";
import { OPTIONS } from "../../../src/config/options.ts";
import { sampleFile } from "../../../src/config/render_toml.ts";
import { NO_EFFECT } from "../../../src/config/rules.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { generateSecretKey } from "../../../src/nix/signature.ts";
import { inputsOf } from "../../support/config_inputs.ts";

const KEY = generateSecretKey("builder-1").publicKey.text;

/** Words that give an option in vain, and words that give it its effect. */
const CASES: Readonly<Record<string, readonly [string, string]>> = {
  "cache.trusted-upload-key": [`--cache-trusted-upload-key=${KEY}`, "--cache-allow-put-verb"],
  "cache.require-trusted-signature": [
    "--cache-require-trusted-signature",
    `--cache-allow-put-verb --cache-trusted-upload-key=${KEY}`,
  ],
  "cache.lru-schedule": [
    "--cache-lru-schedule=@daily --cache-max-size=unlimited",
    "--cache-lru-schedule=@daily",
  ],
  "cache.lru-schedule-timezone": [
    "--cache-lru-schedule-timezone=Local",
    "--cache-max-size=1G --cache-lru-schedule=@daily",
  ],
  "cache.secret-key-path": [
    "--cache-secret-key-path=/k --no-cache-sign-narinfo",
    "--cache-secret-key-path=/k",
  ],
  "server.connections-per-address": [
    "--server-connections-per-address=9 --server-addr=unix:/s",
    "--server-connections-per-address=9",
  ],
  "server.socket-mode": ["--server-socket-mode=0600", "--server-addr=unix:/s"],
  "server.socket-group": ["--server-socket-group=nginx", "--server-addr=unix:/s"],
  "server.accel-redirect": [
    "--server-accel-redirect=/a/",
    "--server-trusted-proxies=127.0.0.1",
  ],
  "cache.storage-s3-endpoint": [
    "--cache-storage-s3-endpoint=https://s3.example",
    "--cache-storage-s3-bucket=nars",
  ],
  "otel.grpc-url": ["--otel-grpc-url=http://o.example", "--otel-enabled"],
  "otel.propagate-to-upstreams": ["--otel-propagate-to-upstreams", "--otel-enabled"],
  "analytics.reporting-enabled": [
    "--analytics-reporting-enabled",
    "--analytics-reporting-url=https://a.example",
  ],
  "analytics.reporting-url": [
    "--analytics-reporting-url=https://a.example",
    "--analytics-reporting-enabled",
  ],
};

const warningsOf = (words: string) =>
  resolveSettings(inputsOf({ args: words.split(" ") })).warnings;

for (const [key, [inVain, remedy]] of Object.entries(CASES)) {
  Deno.test(`no effect: ${key} in vain is a warning, and none with its missing setting`, () => {
    const [warning = ""] = warningsOf(inVain);

    assert.ok(warning.startsWith(`${flagName(key)}: has no effect `), warning);
    const both = inVain.startsWith(remedy) ? remedy : `${inVain} ${remedy}`;
    assert.deepEqual(warningsOf(both), []);
  });
}

Deno.test("no effect: settings about upstreams say so where there is none", () => {
  const toml = "cache.upstream-url = []\ncache.negative-ttl = '5s'\nnetrc-file = '/n'\n";

  const warnings = resolveSettings(inputsOf({ toml })).warnings;

  assert.equal(warnings.length, 2);
  for (const warning of warnings) {
    assert.match(warning, /has no effect without cache.upstream-url$/);
  }
});

Deno.test("no effect: each rule is about an option that can be given in vain", () => {
  const keys = NO_EFFECT.map(({ about: [key] }) => key);
  assert.equal(new Set(keys).size, keys.length);
  for (const key of keys) assert.ok(key in OPTIONS, key);
});

Deno.test("no effect: a file of all defaults has no warnings", () => {
  const { warnings } = resolveSettings(inputsOf({ toml: sampleFile(OPTIONS, "About") }));

  assert.deepEqual(warnings, []);
});
