import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { type LarderFlags, type LarderProcess, startLarder } from "../support/larder_process.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import {
  openRedisCluster,
  openRedisSentinel,
  openRedisTls,
  openRedisTlsSentinel,
  type RedisGroup,
  SENTINEL_MASTER,
} from "../support/redis_groups.ts";
import { redisMissing } from "../support/redis_server.ts";
import { scrape } from "../support/scrape.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";

const ACQUIRED =
  'larder_lock_acquisitions_total{type="download",result="success",mode="distributed"}';

/** Enough to pull another one until locks are back. */
const objects = Array.from({ length: 2_000 }, (_, seed) => (
  makeStoreObject({ name: "locked", size: 1_000, seed })
));

interface Kind {
  readonly name: string;
  readonly unavailable: string;
  readonly open: () => Promise<RedisGroup>;
  readonly flags?: LarderFlags;
}

const KINDS: readonly Kind[] = [
  { name: "a cluster", unavailable: redisMissing, open: openRedisCluster },
  {
    name: "sentinels",
    unavailable: redisMissing,
    open: openRedisSentinel,
    flags: { "cache-redis-sentinel-master": SENTINEL_MASTER },
  },
  {
    name: "sentinels with TLS",
    unavailable: redisMissing || programsMissing("openssl"),
    open: openRedisTlsSentinel,
    flags: { "cache-redis-sentinel-master": SENTINEL_MASTER, "cache-redis-use-tls": "true" },
  },
  {
    name: "TLS",
    unavailable: redisMissing || programsMissing("openssl"),
    open: openRedisTls,
    flags: { "cache-redis-use-tls": "true" },
  },
];

for (const { name, unavailable, open, flags } of KINDS) {
  testUnless(unavailable, `locks by ${name}: cold paths come without a frozen server`, async () => {
    await using group = await open();
    await using upstream = await fakeUpstream({ objects, stored: true });
    await using larder = await startLarder({
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "prometheus-enabled": "true",
      "cache-redis-addrs": group.addresses,
      ...(group.caFile === undefined ? {} : { "cache-upstream-ca-file": group.caFile }),
      ...flags,
    });
    const cold = objects.values();
    await bothLocksAcquired(larder, cold);

    group.master.freeze();
    await pull(larder, cold);
    await pull(larder, cold);
    // The others of a group replace it by themselves.
    if (group.isAlone) group.master.wake();

    await bothLocksAcquired(larder, cold);
  });
}

/** Pulls until one path has both of its locks: a group may answer late at first. */
async function bothLocksAcquired(larder: LarderProcess, cold: Iterator<StoreObject>) {
  await eventually("both locks of a path are acquired", async () => {
    const before = await acquired(larder);
    await pull(larder, cold);
    return await acquired(larder) >= before + 2;
  });
}

async function acquired({ url }: LarderProcess): Promise<number> {
  return (await scrape({ get: (path) => fetch(url + path) })).value(ACQUIRED) ?? 0;
}

/** Fails unless narinfo and NAR are right. */
async function pull({ port }: LarderProcess, cold: Iterator<StoreObject>): Promise<void> {
  const { value } = cold.next();
  assert.ok(value);
  const { status } = await servedNar(port, await servedNarinfo(port, value.storePathHash));
  assert.equal(status, 200);
}
