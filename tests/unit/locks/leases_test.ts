import assert from "node:assert/strict";
import type { MemberId } from "../../../src/base/member_id.ts";
import { LeaseMetrics, Leases } from "../../../src/locks/leases.ts";
import type { Locks } from "../../../src/locks/locks.ts";
import type { RedisClient } from "../../../src/locks/redis/redis_client.ts";
import { RedisLocks } from "../../../src/locks/redis/redis_locks.ts";
import { MemberLeases } from "../../../src/locks/work_leases.ts";
import type { StorePathHash } from "../../../src/nix/store_path.ts";
import { clock, playRuntime } from "../../../src/runtime/current.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { NO_TRACER } from "../../../src/telemetry/tracer.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { PlayedTime } from "../../support/played_time.ts";

const OTHER = "host.1.other" as MemberId;

const SELF = `host.1.${crypto.randomUUID()}` as MemberId;

/** Another member has every lock. */
const HELD: Locks = {
  tryAcquire: () => Promise.resolve(undefined),
  holderOf: () => Promise.resolve({ member: OTHER, token: "" }),
  free: () => Promise.resolve(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

Deno.test("leases: while another member evicts, the log says so every ten seconds", async () => {
  using time = new PlayedTime();
  const scene = sceneOf(HELD);
  for (let attempt = 0; attempt < 45; attempt++) {
    const { kind } = await scene.leases.take({ lockType: "lru", ttlMs: 1_000, retryPolicy: NONE });
    assert.equal(kind, "theirs");
    await time.advance(250);
  }
  const lines = scene.lines.filter(({ msg }) => msg === "another instance is running LRU");
  const told = lines.flatMap(({ level }, at) => level === "info" ? [at] : []);
  assert.deepEqual([told, lines.length], [[0, 40], 45]);
});

Deno.test("leases: a lock that others hold is one warning, until one is acquired", async () => {
  let held = true;
  const { signal: lost } = new AbortController();
  const lease = { lost, [Symbol.asyncDispose]: () => Promise.resolve() };
  const tryAcquire = () => Promise.resolve(held ? undefined : lease);
  const { leases, lines } = sceneOf({ ...HELD, tryAcquire });
  const job = { lockType: "download:narinfo", hash: "a", ttlMs: 1_000, retryPolicy: NONE } as const;
  for (let attempt = 0; attempt < 3; attempt++) await leases.take(job);
  held = false;
  await using taken = await leases.take(job);
  assert.equal(taken.kind, "ours");
  assert.deepEqual(
    lines.filter(({ msg }) => msg !== "acquired download lock").map(({ level, msg }) => [
      level,
      msg,
    ]),
    [
      ["warn", "failed to acquire lock"],
      ["debug", "failed to acquire lock"],
      ["debug", "failed to acquire lock"],
      ["info", "locks are acquired again"],
    ],
  );
});

Deno.test("leases: members stream NARs alone, so the hint for narinfos is another", async () => {
  for (
    const [lockType, isStreamed] of [["download:nar", true], ["download:narinfo", false]] as const
  ) {
    const { leases, lines } = sceneOf(HELD);
    await leases.take({ lockType, hash: "a", ttlMs: 1_000, retryPolicy: NONE });
    assert.equal(/--cache-advertise-url/.test(lines[0]?.["hint"] ?? ""), isStreamed, lockType);
  }
});

Deno.test("leases: a loopback URL is of use on its holder's own host alone", async () => {
  const job = { lockType: "download:nar", hash: "a", ttlMs: 1_000, retryPolicy: NONE } as const;
  for (
    const [member, url, expected] of [
      ["host.2.ab", "http://127.0.0.1:1", "http://127.0.0.1:1"],
      ["away.2.ab", "http://10.0.0.1:1", "http://10.0.0.1:1"],
      ["away.2.ab", "http://127.0.0.1:1", undefined],
      ["away.2.ab", "http://[::1]:1", undefined],
      ["away.2.ab", "http://localhost:1", undefined],
      ["away.2.ab", "no URL", undefined],
    ] as const
  ) {
    const id = member.replace("ab", crypto.randomUUID()) as MemberId;
    const holder = { member: id, token: "" };
    const { leases } = sceneOf({ ...HELD, holderOf: () => Promise.resolve(holder) }, url);
    assert.equal((await leases.otherHolder(job))?.url, expected, `${member} ${url}`);
    const { kind } = await leases.take({ ...job, mayStream: true });
    assert.equal(kind, expected === undefined ? "ours" : "theirs", `${member} ${url}`);
  }
});

Deno.test("leases: a holder at this member's own URL is its predecessor, and its lock is freed", async () => {
  const job = { lockType: "download:nar", hash: "a", ttlMs: 1_000, retryPolicy: NONE } as const;
  for (
    const [url, isFreed] of [["http://10.0.0.1:1", true], ["http://10.0.0.2:1", false]] as const
  ) {
    let frees = 0;
    const free = async () => void frees++;
    const { leases } = sceneOf({ ...HELD, free }, url, "http://10.0.0.1:1");
    await leases.take(job);
    assert.equal(frees > 0, isFreed, url);
  }
});

Deno.test("leases: a frozen Redis delays the first cold path by two seconds, and no other", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  const silent = () => new Promise<never>(() => {});
  const client = { set: silent, get: silent, eval: silent, setrange: silent, disconnect() {} };
  const locks = new RedisLocks({
    connection: {
      client: client as unknown as RedisClient,
      failure: () => undefined,
      answered() {},
      localAddress: () => undefined,
    },
    keyPrefix: "",
    storageId: () => Promise.resolve(undefined),
    holder: { member: SELF },
    log: createLogger("error", { write() {} }),
  });
  const { leases } = sceneOf(locks);
  const work = new MemberLeases({
    leases,
    downloadTtlMs: 5_000,
    lruTtlMs: 5_000,
    retryPolicy: NONE,
  });
  const hash = "0".repeat(32) as StorePathHash;
  const isDone = () => Promise.resolve(false);
  await played.play((async () => {
    const delays: number[] = [];
    for (let path = 0; path < 3; path++) {
      const startedAtMs = clock.nowMs();
      const { kind } = await work.narinfo(hash, isDone);
      assert.equal(kind, "ours", "it goes on without a lock");
      delays.push(clock.nowMs() - startedAtMs);
    }
    const [first = 0, ...others] = delays;
    // Two commands, and the pauses before two retries, which vary by a half.
    assert.ok(first >= 2_015 && first <= 2_030, `${first}`);
    assert.deepEqual(others, [0, 0]);
  })());
});

const NONE = { retriesMax: 0, initialDelayMs: 1, maxDelayMs: 1, hasJitter: false };

/** `url`: of all members, by their rows. `ownUrl`: of this one. */
function sceneOf(locks: Locks, url?: string, ownUrl?: string) {
  const lines: Record<string, string>[] = [];
  const leases = new Leases({
    locks,
    ownLocks: undefined,
    self: { member: SELF, ...ownUrl !== undefined && { url: ownUrl } },
    members: { find: (member) => Promise.resolve({ member, url }) },
    metrics: new LeaseMetrics(new Metrics()),
    tracer: NO_TRACER,
    log: createLogger("debug", { write: (line) => lines.push(JSON.parse(line)) }),
  });
  return { leases, lines };
}
