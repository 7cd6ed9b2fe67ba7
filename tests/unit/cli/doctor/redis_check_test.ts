import assert from "node:assert/strict";
import { resolveSettings } from "../../../../src/config/settings.ts";
import { checkRedis } from "../../../../src/cli/doctor/back_end_checks.ts";
import { inputsOf } from "../../../support/config_inputs.ts";
import { testUnless } from "../../../support/program.ts";
import { redisMissing, RedisServer } from "../../../support/redis_server.ts";

async function findingsWith(...args: readonly string[]) {
  return await checkRedis(resolveSettings(inputsOf({ args })).settings);
}

Deno.test("doctor: without a Redis in the settings there is no line on it", async () => {
  assert.deepEqual(await findingsWith(), []);
});

testUnless(redisMissing, "doctor: a Redis that answers is ok", async () => {
  await using redis = await RedisServer.open();
  const [finding] = await findingsWith(`--cache-redis-addrs=${redis.address}`);
  assert.equal(finding?.mark, "ok", finding?.fact);
});
