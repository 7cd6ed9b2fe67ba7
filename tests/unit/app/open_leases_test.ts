import assert from "node:assert/strict";
import { memberUrl, openLeases } from "../../../src/app/open_leases.ts";
import { newStorageId, type StorageId } from "../../../src/base/storage_id.ts";
import { readSettings } from "../../../src/config/settings.ts";
import type { WorkLeases } from "../../../src/locks/work_leases.ts";
import type { Member } from "../../../src/metadata/space_keeper.ts";
import type { NarName } from "../../../src/nix/nar_name.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { narOf } from "../../support/metadata_rows.ts";
import { inputsOf } from "../../support/config_inputs.ts";
import { testUnless } from "../../support/program.ts";
import { redisMissing, RedisServer } from "../../support/redis_server.ts";

testUnless(redisMissing, "leases: two storages on one Redis and prefix share no lock", async () => {
  await using redis = await RedisServer.open();
  await using one = await leasesAt(redis, newStorageId());
  await using other = await leasesAt(redis, newStorageId());

  await using first = await one.eviction();
  await using second = await other.eviction();

  assert.deepEqual([first.kind, second.kind], ["ours", "ours"]);
  assert.equal(redis.ask("DBSIZE").trim(), "2", "each holds its own");
});

testUnless(redisMissing, "leases: a storage has an id once its bucket has answered", async () => {
  await using redis = await RedisServer.open();
  const storage: { id?: StorageId } = {};
  await using leases = await leasesAt(redis, () => storage.id);
  {
    await using _early = await leases.eviction();
    assert.equal(redis.ask("KEYS", "*").trim(), "larder:lock:lru");
  }
  storage.id = newStorageId();

  await using _late = await leases.eviction();

  assert.equal(redis.ask("KEYS", "*").trim(), `larder:lock:${storage.id}:lru`);
});

Deno.test("leases: a member without an advertised URL is reached where it listens", () => {
  for (
    const [listening, local, expected] of [
      ["http://127.0.0.1:8501", "10.0.0.7", "http://127.0.0.1:8501"],
      ["http://[fd00::1]:8501", undefined, "http://[fd00::1]:8501"],
      ["http://localhost:8501", "10.0.0.7", "http://10.0.0.7:8501"],
      ["http://localhost:80", "::ffff:10.0.0.7", "http://10.0.0.7:80"],
      ["http://localhost:8501", "fd00::7", "http://[fd00::7]:8501"],
      ["http://localhost:8501", "fe80::7%eth0", undefined],
      ["http://localhost:8501", undefined, undefined],
      // No certificate names an address.
      ["https://localhost:8501", "10.0.0.7", undefined],
      ["unix:/run/larder.sock", "10.0.0.7", undefined],
      [undefined, "10.0.0.7", undefined],
    ] as const
  ) assert.equal(memberUrl(listening, local), expected, `${listening} ${local}`);
});

testUnless(redisMissing, "leases: a token goes to no URL that stands in Redis alone", async () => {
  await using redis = await RedisServer.open();
  const nar = narOf("a").name;
  const thief = "host.9.00000000-0000-4000-8000-000000000009";
  const [row, stolen] = [{ id: thief, silentMs: 0 }, "http://10.9.9.9:1"];
  const rows: Member[] = [];
  await using leases = await leasesAt(redis, newStorageId(), rows);
  const key = await keyOf(redis, leases, nar);
  redis.ask("SET", key, JSON.stringify({ member: thief, url: stolen, token: "t" }));
  assert.equal(await leases.holderOf(nar), undefined, "it is no member");
  rows.push(row);
  assert.equal(await leases.holderOf(nar), undefined, "its row has no URL");
  rows.splice(0, 1, { ...row, url: "http://10.0.0.2:8501" });
  assert.deepEqual(await leases.holderOf(nar), { url: "http://10.0.0.2:8501" });
});

/** The key of a NAR's lock. */
async function keyOf(redis: RedisServer, leases: WorkLeases, nar: NarName): Promise<string> {
  await using _lease = await leases.nar(nar, () => Promise.resolve(false));
  return redis.ask("KEYS", "*").trim();
}

let members = 0;

/** A member of a storage, which knows no other. */
async function leasesAt(
  redis: RedisServer,
  id: StorageId | (() => StorageId | undefined),
  rows: readonly Member[] = [],
) {
  const args = [`--cache-redis-addrs=${redis.address}`];
  const { settings } = await readSettings(inputsOf({ args }));
  const leases = await openLeases(settings, {
    member: `host.${++members}.member`,
    metadata: { members: () => Promise.resolve(rows) },
    ids: { storageId: () => Promise.resolve(typeof id === "function" ? id() : id) },
    metrics: new Metrics(),
    tracer: undefined,
    log: createLogger("error", { write() {} }),
  });
  assert.ok(leases);
  return leases;
}
