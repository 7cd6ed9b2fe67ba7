import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { MARK_NAME, parseMark } from "../../src/storage/storage_mark.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import type { LarderProcess } from "../support/larder_process.ts";
import { NginxFront } from "../support/nginx_front.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { record } from "../support/reliability_record.ts";
import { openRedisLocks } from "../support/redis_locks.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { Replicas } from "../support/replicas.ts";
import { scrape } from "../support/scrape.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { narFolderOf } from "../support/shared_servers.ts";
import { accountsOf } from "../support/storage_look.ts";
import { LOCKS_ELSEWHERE } from "../support/shared_servers.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";

const TTL_MS = 60_000;
/** So slow that larders which ask at once ask before the first answer. */
const UPSTREAM_MS = 40;

const objects = Array.from({ length: 24 }, (_, seed) => (
  makeStoreObject({ name: "locked", size: 60_000, seed })
));

for (const isLocked of [true, false]) {
  const outcome = isLocked ? "fetch each path once" : "serve the same bytes without locks";
  // All larders have locks there, and the first of both rows with them.
  if (!isLocked && LOCKS_ELSEWHERE !== "") continue;
  testUnless(redisMissing, `locks: two larders with the same requests ${outcome}`, async () => {
    await using redis = await RedisServer.open();
    await using upstream = await fakeUpstream({ objects, stored: true });
    // larder fetches a prefetched path once, too, but by other rules.
    const flags = { "cache-prefetch": "false" };
    const locks = isLocked ? redis : undefined;
    await using replicas = await Replicas.start({ upstream, redis: locks, flags });
    const [one, other] = replicas.larders;
    assert.ok(one && other);
    /** Both get the same request: the upstream answers once both are on their way. */
    const both = async <Served>(path: string, serve: (port: number) => Promise<Served>) => {
      const answering = Promise.withResolvers<void>();
      using _answering = { [Symbol.dispose]: answering.resolve };
      upstream.onRequest = () => answering.promise.then(() => undefined);
      const before = isLocked ? await unacquired(other) : 0;
      const first = serve(one.port);
      await upstream.requested(path);
      const second = serve(other.port);
      if (isLocked) {
        await eventually("it finds a lock", async () => await unacquired(other) > before);
      } else await upstream.requested(path, 2);
      answering.resolve();
      const served = await Promise.all([first, second]);
      assert.equal(upstream.count(path), isLocked ? 1 : 2);
      return served;
    };
    for (const object of objects.slice(0, 3)) {
      const { storePathHash } = object;
      const [narinfo] = await both(
        `/${storePathHash}.narinfo`,
        (port) => servedNarinfo(port, storePathHash),
      );
      const nars = await both(narinfo.narPath, (port) => servedNar(port, narinfo));
      assert.deepEqual(nars.map(({ status }) => status), [200, 200]);
    }
  });
}

/** How often a larder has found a lock that another one has. */
async function unacquired({ url }: LarderProcess): Promise<number> {
  const metrics = await scrape({ get: (path) => fetch(url + path) });
  const key = '{type="download",result="failure",mode="distributed"}';
  return metrics.value('larder_lock_retry_attempts_total{type="download"}') +
    metrics.value(`larder_lock_acquisitions_total${key}`);
}

/** How often a larder has not got a lock, as Redis did not answer. */
async function lockFailures({ url }: LarderProcess): Promise<number> {
  const metrics = await scrape({ get: (path) => fetch(url + path) });
  const counts = Object.entries(metrics.nonZero("larder_lock_failures_total"));
  return counts.filter(([labels]) => labels.includes('type="download"'))
    .reduce((sum, [, count]) => sum + count, 0);
}

testUnless(redisMissing, "locks: the log and the metrics tell of them", async () => {
  await using redis = await RedisServer.open();
  await using upstream = await slowUpstream();
  await using replicas = await Replicas.start({ upstream, redis, count: 1 });
  const [object] = objects;
  assert.ok(object);
  const larder = replicas.at(0);
  assert.equal(await pull(larder, object), 200);

  const line = await larder.logged("acquired download lock", ({ lock_type }) => (
    lock_type === "download:nar"
  ));
  assert.equal(line.level, "info");
  assert.match(String(line["hash"]), /^[0-9a-z]{52}$/);
  assert.ok(Number.isInteger(line["duration_ms"]));
  assert.equal(line["retries"], 0);
  await eventually("both locks are released", async () => {
    const metrics = await scrape({ get: (path) => fetch(larder.url + path) });
    const held = metrics.nonZero("larder_lock_hold_duration_seconds_count");
    const key = '{type="download",mode="distributed"}';
    assert.equal(
      metrics.value('larder_lock_failures_total{type="lru",reason="timeout",mode="local"}'),
      0,
    );
    return held[key] === 2 && metrics.value(
          'larder_lock_acquisitions_total{type="download",result="success",mode="distributed"}',
        ) === 2;
  });
});

testUnless(redisMissing, "locks: eviction waits for a living member, not a dead one", async () => {
  await using redis = await RedisServer.open();
  await using upstream = await slowUpstream();
  const keyPrefix = "evicting:";
  const flags = { "cache-max-size": "10M", "cache-lock-redis-key-prefix": keyPrefix };
  await using replicas = await Replicas.start({ upstream, redis, count: 1, flags });
  const larder = replicas.at(0);
  const [living] = [...Deno.readDirSync(`${replicas.storage}/tmp`)];
  assert.ok(living);
  const markPath = `${narFolderOf(replicas.storage)}/${MARK_NAME}`;
  const { id: storageId } = parseMark(Deno.readTextFileSync(markPath));
  const locksOf = (member: string) =>
    openRedisLocks(redis.address, { keyPrefix, storageId, holder: { member } });
  const collect = async () => {
    const [object] = objects;
    assert.equal(object && await pull(larder, object), 200);
    // Its client may have it before it is stored. Then there is nothing to evict yet.
    await larder.logged("nar cached successfully");
    const answer = await fetch(`${larder.url}/gc?target=0`, { method: "POST" });
    return /"reached":(\w+)/.exec(await answer.text())?.[1];
  };
  {
    await using other = await locksOf(living.name);
    await using _lease = await other.tryAcquire("lru", TTL_MS);
    assert.equal(await collect(), "false");
    await larder.logged("another instance is running LRU");
  }
  {
    await using dead = await locksOf("host.1.dead");
    await using _lease = await dead.tryAcquire("lru", TTL_MS);
    assert.equal(await collect(), "true");
    await larder.logged("lock of an absent member freed");
  }
});

/** Ways in which Redis goes away, and comes back. */
const ENDINGS = [
  {
    ending: "frozen",
    end: (redis: RedisServer) => Promise.resolve(redis.freeze()),
    mend: (redis: RedisServer) => Promise.resolve(redis.wake()),
  },
  {
    ending: "killed, and starts again",
    end: (redis: RedisServer) => redis.kill(),
    mend: (redis: RedisServer) => redis.start(),
  },
] as const;

for (const count of [2, 3]) {
  for (const { ending, end, mend } of ENDINGS) {
    testUnless(
      redisMissing || programsMissing("nginx"),
      `locks: ${count} larders, Redis is ${ending}: cold paths are late, none breaks`,
      async () => {
        await using redis = await RedisServer.open();
        await using upstream = await slowUpstream();
        // Else the larder with the narinfo fetches the NAR, too.
        const flags = { "cache-prefetch": "false" };
        await using replicas = await Replicas.start({ upstream, redis, count, flags });
        const [warm, next, ...cold] = objects;
        assert.ok(warm && next);
        const { larders } = replicas;
        // It asks them in turns: a narinfo of one larder, and its NAR of the next one.
        await using front = await NginxFront.open(larders.map(({ port }) => port));
        assert.equal(await pull(front, warm), 200);
        // The client has its last byte before the file is stored.
        await eventually("it is kept", () => accountsOf(replicas.storage).keptFiles === 1);

        await end(redis);
        assert.equal(await pull(front, warm), 200);
        for (const larder of larders) {
          assert.equal(await lockFailures(larder), 0, "a warm path needs no lock");
        }
        // Each larder has to notice.
        const [firsts, lasts] = [cold.splice(0, Math.ceil(count / 2)), cold.splice(0, count)];
        for (const first of firsts) {
          assert.equal(await pull(front, first), 200);
        }
        assert.equal(await pull(front, next), 200);
        for (const larder of larders) {
          assert.ok(await lockFailures(larder) > 0);
          await larder.logged("circuit breaker open: Redis is unavailable");
          const failed = await larder.logged("failed to acquire lock");
          assert.equal(failed.level, "warn");
        }
        await mend(redis);

        for (const larder of larders) {
          await larder.logged("circuit breaker closed: Redis is available again");
        }
        for (const last of lasts) assert.equal(await pull(front, last), 200);
        for (const larder of larders) await larder.logged("locks are acquired again");
        const pulled = [warm, ...firsts, next, ...lasts].length;
        await eventually("all are kept", () => accountsOf(replicas.storage).keptFiles === pulled);
        for (const path of ["a warm path", "cold paths"]) {
          const fault = `Redis is ${ending}: ${path}`;
          record({ area: "members", fault, saw: "whole", kept: "nar" });
        }
      },
    );
  }
}

testUnless(redisMissing, "locks: with degraded mode, locks of the process stand in", async () => {
  await using redis = await RedisServer.open();
  await using upstream = await slowUpstream();
  const flags = { "cache-lock-allow-degraded-mode": "true" };
  await using replicas = await Replicas.start({ upstream, redis, count: 1, flags });
  const [object] = objects;
  assert.ok(object);
  const larder = replicas.at(0);
  await redis.kill();

  assert.equal(await pull(larder, object), 200);

  const metrics = await scrape({ get: (path) => fetch(larder.url + path) });
  const local = 'larder_lock_acquisitions_total{type="download",result="success",mode="local"}';
  assert.equal(metrics.value(local), 2);
  assert.ok(larder.lines.every(({ msg }) => msg !== "failed to acquire lock"));
});

async function slowUpstream(): Promise<FakeUpstream> {
  const upstream = await fakeUpstream({ objects, stored: true });
  upstream.onRequest = async () => {
    await clock.pause(UPSTREAM_MS);
    return undefined;
  };
  return upstream;
}

/** The NAR's status. Fails unless the narinfo is there, and a 200 is right. */
async function pull(
  { port }: { readonly port: number },
  { storePathHash }: StoreObject,
): Promise<number> {
  return (await servedNar(port, await servedNarinfo(port, storePathHash))).status;
}
