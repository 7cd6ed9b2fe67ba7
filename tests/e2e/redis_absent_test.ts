import assert from "node:assert/strict";
import { MARK_NAME, parseMark } from "../../src/storage/storage_mark.ts";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { Gate } from "../support/faults.ts";
import { LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { testUnless } from "../support/program.ts";
import { openRedisLocks } from "../support/redis_locks.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { Replicas } from "../support/replicas.ts";
import { scrape } from "../support/scrape.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { narFolderOf } from "../support/shared_servers.ts";
import { accountsOf } from "../support/storage_look.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const NAR_BYTES = 600_000;
const TTL_MS = 60_000;

const objects = ["one", "two", "three"].map((name, seed) => (
  makeStoreObject({ name, size: NAR_BYTES, seed })
));
const [FIRST, SECOND, THIRD] = objects.map(({ storePathHash }) => storePathHash);

testUnless(redisMissing, "Redis is away at the start: larder serves, and locks later", async () => {
  await using redis = await RedisServer.open();
  await redis.kill();
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using replicas = await Replicas.start({ upstream, redis, count: 1 });
  const larder = replicas.at(0);
  const pull = async (storePathHash = "") =>
    (await servedNar(larder.port, await servedNarinfo(larder.port, storePathHash))).status;

  assert.equal(await pull(FIRST), 200);
  await larder.logged("circuit breaker open: Redis is unavailable");

  await redis.start();
  await larder.logged("circuit breaker closed: Redis is available again");
  assert.equal(await pull(SECOND), 200);
  await larder.logged("acquired download lock");
  await eventually("both are kept", () => accountsOf(replicas.storage).keptFiles === 2);
});

testUnless(redisMissing, "Redis loses its data: running downloads end as they would", async () => {
  await using redis = await RedisServer.open();
  await using upstream = await fakeUpstream({ objects, stored: true });
  const flags = { "cache-prefetch": "false" };
  await using replicas = await Replicas.start({ upstream, redis, count: 2, flags });
  const gate = new Gate();
  using _open = { [Symbol.dispose]: () => gate.open() };
  const [one, other] = replicas.larders.map(({ port }) => port);
  const narinfos = await Promise.all(objects.map(({ storePathHash }) => (
    servedNarinfo(one ?? 0, storePathHash)
  )));
  upstream.breakNar(gate.fault);
  gate.release(NAR_BYTES / 4);
  const begun = narinfos.map((narinfo) => servedNar(one ?? 0, narinfo));
  await eventually("all are requested", () => upstream.count(/^\/nar\//) === objects.length);

  redis.ask("FLUSHALL");
  // Without its lock, nothing tells of the first one's download.
  const second = narinfos.map((narinfo) => servedNar(other ?? 0, narinfo));
  await eventually("the other begins", () => upstream.count(/^\/nar\//) > objects.length);
  gate.open();

  const answers = await Promise.all([...begun, ...second]);
  assert.deepEqual(answers.map(({ status }) => status), answers.map(() => 200));
  const { length } = objects;
  await eventually("each is kept once", () => accountsOf(replicas.storage).keptFiles === length);
  assert.ok(upstream.count(/^\/nar\//) <= 2 * length, "each larder asks once at most");
});

testUnless(
  redisMissing,
  "a lock that another member keeps is logged, and holds up no client",
  async () => {
    await using redis = await RedisServer.open();
    await using upstream = await fakeUpstream({ objects, stored: true });
    const keyPrefix = "kept:";
    const flags = {
      "cache-prefetch": "false",
      "cache-lock-redis-key-prefix": keyPrefix,
      "cache-lock-retry-initial-delay": "10ms",
    };
    await using replicas = await Replicas.start({ upstream, redis, count: 1, flags });
    const larder = replicas.at(0);
    const narinfo = await servedNarinfo(larder.port, THIRD ?? "");
    const membersNow = () =>
      [...Deno.readDirSync(`${replicas.storage}/tmp`)].map(({ name }) => name);
    const before = membersNow();
    // Others cannot read from a member at a socket.
    using folder = tempFolder();
    await using _silent = await startLarder({
      "server-addr": `unix:${folder.path}/socket`,
      "cache-storage-local": replicas.storage,
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "cache-redis-addrs": redis.address,
      ...flags,
      ...LONG_TIMEOUTS,
    });
    const [member] = membersNow().filter((name) => !before.includes(name));
    const mark = Deno.readTextFileSync(`${narFolderOf(replicas.storage)}/${MARK_NAME}`);
    const { id: storageId } = parseMark(mark);
    const options = { keyPrefix, storageId, holder: { member: member ?? "" } };
    await using locks = await openRedisLocks(redis.address, options);
    await using _lease = await locks.tryAcquire(
      `download:nar:${narinfo.narPath.slice("/nar/".length)}`,
      TTL_MS,
    );

    assert.equal((await servedNar(larder.port, narinfo)).status, 200);

    const told = await larder.logged("failed to acquire lock");
    assert.deepEqual([told.level, told["lock_type"], told["reason"]], [
      "warn",
      "download:nar",
      "timeout",
    ]);
    assert.match(String(told["hint"]), /--cache-advertise-url/);
    const metrics = await scrape({ get: (path) => fetch(larder.url + path) });
    const labels = 'type="download",reason="timeout",mode="distributed"';
    assert.equal(metrics.value(`larder_lock_failures_total{${labels}}`), 1);
  },
);
