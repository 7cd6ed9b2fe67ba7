import assert from "node:assert/strict";
import { runLarder } from "../../support/run_larder.ts";

const FILE = "/etc/larder/config.toml";
const OWN = "/home/ada/own.toml";
const SURROUNDINGS = {
  files: {
    [FILE]: '[cache]\nmax-size = "40G"\nget-token = "sesame-read"\n',
    [OWN]: 'log-level = "warn"\n',
  },
  env: { CACHE_PRIORITY: "20", CACHE_ADMIN_TOKEN: "sesame-admin" },
};

/** What both commands print with these words, which is the same. */
async function printed(...words: readonly string[]): Promise<string> {
  const own = await runLarder(["config", ...words], SURROUNDINGS);
  const ofStatus = await runLarder(["status", "--config", ...words], SURROUNDINGS);
  assert.deepEqual(ofStatus, own);
  assert.deepEqual([own.status, own.err], [0, ""]);
  assert.doesNotMatch(own.out, /sesame/);
  return own.out;
}

Deno.test("config: each effective setting has its source, also as status --config", async () => {
  const out = await printed("--log-level", "debug");
  for (
    const line of [
      /^log-level = "debug" +# flag --log-level$/m,
      /^cache\.priority = 20 +# environment CACHE_PRIORITY$/m,
      /^cache\.max-size = "40G" +# file \/etc\/larder\/config\.toml$/m,
      /^cache\.admin-token = "\(hidden\)" +# environment CACHE_ADMIN_TOKEN$/m,
      /^server\.addr = ":8501" +# default$/m,
      /^# server\.tls-cert is not set +# default \(none\)$/m,
    ]
  ) assert.match(out, line);
});

Deno.test("config: --json has the same for programs, with no secret in it", async () => {
  const settings = JSON.parse(await printed("--json", "--log-level=debug"));
  const of = (key: string) => Object.values(settings[key]);
  assert.deepEqual(of("log-level"), ["debug", "flag", "--log-level"]);
  assert.deepEqual(of("cache.priority"), [20, "environment", "CACHE_PRIORITY"]);
  assert.deepEqual(of("cache.max-size"), ["40G", "file", FILE]);
  assert.deepEqual(of("cache.get-token"), ["(hidden)", "file", FILE]);
  assert.deepEqual(of("cache.admin-token"), ["(hidden)", "environment", "CACHE_ADMIN_TOKEN"]);
  assert.deepEqual(of("server.allowed-hosts"), [[], "default", null]);
  assert.deepEqual(of("server.tls-cert"), [null, "default", null]);
});

Deno.test("config: status --config takes the server's file, as each command of its options", async () => {
  for (const words of [["--config", OWN], [`--config=${OWN}`]]) {
    const { out, err } = await runLarder(["status", ...words], SURROUNDINGS);
    assert.equal(err, "");
    assert.match(out, /^log-level = "warn" +# file .*own\.toml$/m);
    assert.match(out, /^cache\.max-size = "auto" +# default$/m);
  }
});
