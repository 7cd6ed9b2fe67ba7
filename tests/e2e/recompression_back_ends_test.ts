import assert from "node:assert/strict";
import { openMetadata } from "../../src/app/back_ends/metadata_back_end.ts";
import { openNars } from "../../src/app/back_ends/nar_back_end.ts";
import { storeRedirect } from "../../src/http/routes/nar.ts";
import { LeaseMetrics, Leases } from "../../src/locks/leases.ts";
import { MemberLeases } from "../../src/locks/work_leases.ts";
import { HotMetadataStore } from "../../src/metadata/hot_metadata_store.ts";
import { SystemClock, type Timer } from "../../src/runtime/clock.ts";
import { playRuntime } from "../../src/runtime/current.ts";
import { SizeLimit } from "../../src/space/size_limit.ts";
import { SILENT } from "../../src/telemetry/logger.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { NO_TRACER } from "../../src/telemetry/tracer.ts";
import { decompress } from "../support/decompressors.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { testUnless } from "../support/program.ts";
import { openRedisLocks } from "../support/redis_locks.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { S3_UNAVAILABLE, S3Server } from "../support/s3_server.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { StubEncoder } from "../support/stub_encoder.ts";
import { TestCache } from "../support/test_cache.ts";

const excuse = S3_UNAVAILABLE || postgresMissing || redisMissing;

const s3 = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;
let postgres: PostgresServer | undefined;
let redis: RedisServer | undefined;

Deno.test.beforeAll(async () => {
  if (excuse !== "") return;
  postgres = await PostgresServer.start();
  redis = await RedisServer.open();
});
Deno.test.afterAll(async () => {
  await redis?.[Symbol.asyncDispose]();
});

const HOUR_MS = 3_600_000;
const object = makeStoreObject({ name: "thing-1.0", size: 700_000 });
const { nar, storePathHash } = object;

/** Its timers end with the test: larder waits ten seconds for the client of a redirect. */
class EndingClock extends SystemClock implements Disposable {
  readonly #all = new DisposableStack();

  constructor() {
    super();
    this.#all.use(playRuntime({ clock: this }));
  }

  override after(ms: number, due: () => void, holdsProcess?: boolean): Timer {
    return this.#all.use(super.after(ms, due, holdsProcess));
  }

  [Symbol.dispose](): void {
    this.#all.dispose();
  }
}

/** Members on PostgreSQL, S3 and Redis, with one clock and one encoder. */
async function members(upstream: FakeUpstream, names: readonly string[]) {
  assert.ok(s3 && postgres && redis);
  const scope = new AsyncDisposableStack();
  const time = { nowMs: Date.now() };
  const encoder = new StubEncoder();
  const url = await postgres.createMigrated();
  const bucket = s3.bucket();
  const caches: TestCache[] = [];
  for (const [at, name] of names.entries()) {
    const self = { member: `${name}.1.x` } as const;
    const database = scope.use(await openMetadata({ kind: "postgres", url }, SILENT));
    const metadata = new HotMetadataStore(database, SILENT);
    scope.use(database.subscribe((changed) => metadata.forgetChanged(changed)));
    const { nars, locator, graceMs, ...back } = await openNars({ kind: "s3", s3: bucket });
    scope.use(back);
    const locks = scope.use(await openRedisLocks(redis.address, { holder: self }));
    const leases = new MemberLeases({
      leases: new Leases({
        ...{ locks, ownLocks: undefined, self, tracer: NO_TRACER, log: SILENT },
        members: { find: async (member) => ({ member }) },
        metrics: new LeaseMetrics(new Metrics()),
      }),
      ...{ downloadTtlMs: 60_000, lruTtlMs: 60_000 },
      retryPolicy: { retriesMax: 0, initialDelayMs: 1, maxDelayMs: 1, hasJitter: false },
    });
    assert.ok(locator);
    caches.push(scope.use(
      await TestCache.open({
        ...{ upstreams: [upstream], recompress: { level: 9, encoder } },
        ...{ metadata, nars, leases, nowMs: () => time.nowMs },
        space: { limit: SizeLimit.of(Infinity), owner: self.member, graceMs },
        // The first hands its files over.
        handOver: at === 0 ? storeRedirect(locator) : undefined,
      }),
    ));
  }
  return {
    ...{ caches, encoder, time },
    stored: async () => {
      await using back = await openNars({ kind: "s3", s3: bucket });
      return await Array.fromAsync(back.nars.list(""), ({ at }) => at);
    },
    [Symbol.asyncDispose]: () => scope.disposeAsync(),
  };
}

testUnless(
  excuse,
  "recompression: of members on S3 one writes the object, the others see it, and a redirect names it",
  async () => {
    using _clock = new EndingClock();
    await using upstream = await fakeUpstream({ objects: [object], compression: "xz" });
    await using world = await members(upstream, ["one", "two", "three"]);
    const { caches, encoder, time } = world;
    const [first, second] = caches;
    assert.ok(first && second);
    const path = await second.narPath(storePathHash);
    await (await second.get(path)).bytes();
    await second.downloadsOver();
    for (const one of caches) assert.equal(await one.narPath(storePathHash), path);
    const [former] = await world.stored();

    await Promise.all(caches.map((one) => one.recompress()));
    assert.equal(encoder.orders.length, 0, "a file that was used within the hour stays");
    time.nowMs += 2 * HOUR_MS;
    await Promise.all(caches.map((one) => one.recompress()));
    for (const one of caches) await one.recompress();

    assert.equal(encoder.orders.length, 1, "one member does it, once");
    const zstd = path.replace(".xz", ".zst");
    for (const one of caches) {
      await eventually("the member sees the row", async () => (
        await one.narPath(storePathHash) === zstd
      ));
      const old = await one.get(path);
      assert.equal(old.status, 200);
      assertSameBytes(await decompress(await old.bytes(), "xz"), nar);
    }
    await eventually("the former object is gone", async () => (
      (await world.stored()).every((at) => at !== former)
    ));
    const [at] = await world.stored();
    const redirect = await first.get(zstd);
    assert.equal(redirect.status, 307);
    const location = redirect.headers.get("location") ?? "";
    assert.ok(at && new URL(location).pathname.endsWith(at), location);
    const answer = await fetch(location);
    assertSameBytes(await decompress(await answer.bytes(), "zstd"), nar);
    assertSameBytes(await decompress(await (await second.get(zstd)).bytes(), "zstd"), nar);
    assert.equal(upstream.count(/^\/nar\//), 1);
  },
);
