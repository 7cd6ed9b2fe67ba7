import assert from "node:assert/strict";
import type { MemberId } from "../../../src/base/member_id.ts";
import type { LeaseJob, LockType } from "../../../src/locks/lease_jobs.ts";
import { LeaseMetrics, Leases, type LeasesDeps, UNLOCKED } from "../../../src/locks/leases.ts";
import { type Locks, LocksUnavailable } from "../../../src/locks/locks.ts";
import { clock, playRuntime } from "../../../src/runtime/current.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { prometheusText } from "../../../src/telemetry/prometheus.ts";
import { NO_TRACER } from "../../../src/telemetry/tracer.ts";
import { PlayedLocks } from "../../simulation/played_locks.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { Scrape } from "../../support/scrape.ts";

/** Each call of the played locks takes a millisecond. */
const CALL_MS = 1;
const TWICE = { retriesMax: 2, initialDelayMs: 100, maxDelayMs: 150, hasJitter: false };
const NAR = {
  ...{ lockType: "download:nar", key: "a", hash: "a", ttlMs: 60_000, retryPolicy: TWICE } as const,
};

/** Members that share locks, on virtual time. */
function sharedTest(name: string, play: (scene: Shared) => Promise<void>): void {
  Deno.test(`shared leases: ${name}`, async () => {
    const played = new VirtualClock();
    using _runtime = playRuntime({ clock: played });
    await played.play(play(new Shared()));
  });
}

class Shared {
  readonly table = new PlayedLocks();
  readonly one = this.member(1);
  readonly other = this.member(2);

  member(pid: number, deps: Partial<LeasesDeps> = {}): Member {
    return new Member(`host.${pid}.${crypto.randomUUID()}` as MemberId, this.table, deps);
  }
}

type Line = readonly [level: string, msg: string];

class Member {
  readonly leases: Leases;
  readonly lines: Readonly<Record<string, unknown>>[] = [];
  readonly #metrics = new Metrics({ groups: ["redis"] });

  constructor(readonly id: MemberId, table: PlayedLocks, deps: Partial<LeasesDeps>) {
    this.leases = new Leases({
      locks: table.of({ member: id }),
      ownLocks: undefined,
      self: { member: id },
      members: { find: (member) => Promise.resolve({ member }) },
      metrics: new LeaseMetrics(this.#metrics),
      tracer: NO_TRACER,
      log: createLogger("debug", { write: (line) => void this.lines.push(JSON.parse(line)) }),
      ...deps,
    });
  }

  get said(): readonly Line[] {
    return this.lines.map(({ level, msg }) => [String(level), String(msg)]);
  }

  /** What is counted under a name, by labels. */
  async counted(name: string) {
    return new Scrape(await prometheusText(this.#metrics.snapshot())).nonZero(`larder_${name}`);
  }
}

const SUCCESS = '{type="download",result="success",mode="distributed"}';
const FAILURE = '{type="download",result="failure",mode="distributed"}';

sharedTest("a lease is counted and timed once, and its lock is free then", async (scene) => {
  const { one, table } = scene;
  const lease = await one.leases.take(NAR);
  assert.deepEqual([lease.kind, table.count], ["ours", 1]);
  await clock.pause(7_000);
  for (let ends = 0; ends < 2; ends++) {
    await lease[Symbol.asyncDispose]();
    await clock.pause(5_000);
  }
  assert.equal(table.count, 0);
  assert.deepEqual(await one.counted("lock_acquisitions_total"), { [SUCCESS]: 1 });
  const held = '{type="download",mode="distributed"}';
  assert.deepEqual(await one.counted("lock_hold_duration_seconds_sum"), { [held]: 7 });
  assert.deepEqual(await one.counted("lock_hold_duration_seconds_count"), { [held]: 1 });
});

const SAID: Readonly<Record<LockType, Line>> = {
  "download:nar": ["info", "acquired download lock"],
  "download:narinfo": ["debug", "acquired download lock"],
  lru: ["debug", "acquired lock"],
  repair: ["debug", "acquired lock"],
  recompress: ["debug", "acquired lock"],
  pins: ["debug", "acquired lock"],
};

for (const [lockType, said] of Object.entries(SAID)) {
  sharedTest(`the log says at level ${said[0]} that ${lockType} is acquired`, async ({ one }) => {
    const job: LeaseJob = { lockType: lockType as LockType, ttlMs: 60_000, retryPolicy: TWICE };
    await using _lease = await one.leases.take(job);
    assert.deepEqual(one.said, [said]);
    const { duration_ms, hash } = one.lines[0] ?? {};
    assert.deepEqual([duration_ms, hash], [CALL_MS, undefined]);
    const isCounted = lockType === "lru" || lockType.startsWith("download:");
    const counted = Object.values(await one.counted("lock_acquisitions_total"));
    assert.deepEqual(counted, isCounted ? [1] : []);
  });
}

sharedTest("whoever ends a lease or a probe waits until its lock is free", async (scene) => {
  let frees = 0;
  const lease = {
    lost: new AbortController().signal,
    async [Symbol.asyncDispose]() {
      await clock.pause(5);
      frees++;
    },
  };
  const nothing = () => Promise.resolve(undefined);
  const locks = { ...failingLocks(() => new Error()), tryAcquire: async () => lease };
  const { leases } = scene.member(3, { locks: { ...locks, holderOf: nothing } });
  await (await leases.take(NAR))[Symbol.asyncDispose]();
  assert.equal(frees, 1);
  await leases.take({ ...NAR, isDone: () => Promise.resolve(true) });
  assert.equal(frees, 2);
  await leases.probe();
  assert.equal(frees, 3);
});

sharedTest("a lock that is held is tried again after pauses that double", async (scene) => {
  const { one, other } = scene;
  const held = await other.leases.take(NAR);
  clock.after(200, () => void held[Symbol.asyncDispose]());
  const startedAtMs = clock.nowMs();
  await using lease = await one.leases.take(NAR);
  assert.equal(lease.kind, "ours");
  // Two tries of two calls each, two pauses, and the try that gets it.
  assert.equal(clock.nowMs() - startedAtMs, 4 * CALL_MS + 100 + 150 + CALL_MS);
  assert.deepEqual(await one.counted("lock_retry_attempts_total"), { '{type="download"}': 2 });
  assert.deepEqual(await one.counted("lock_failures_total"), {});
  assert.deepEqual([one.lines[0]?.["retries"], one.lines[0]?.["hash"]], [2, "a"]);
});

sharedTest("a lock that stays held is worked without, and counted as a failure", async (scene) => {
  const { one, other } = scene;
  await using _held = await other.leases.take(NAR);
  assert.equal(await one.leases.take(NAR), UNLOCKED);
  const failed = '{type="download",reason="timeout",mode="distributed"}';
  assert.deepEqual(await one.counted("lock_failures_total"), { [failed]: 1 });
  assert.deepEqual(await one.counted("lock_acquisitions_total"), { [FAILURE]: 1 });
});

sharedTest("an eviction that another member runs is that member's", async (scene) => {
  const job = { lockType: "lru", ttlMs: 60_000, retryPolicy: TWICE } as const;
  await using _held = await scene.other.leases.take(job);
  assert.equal((await scene.one.leases.take(job)).kind, "theirs");
});

sharedTest("work that was done meanwhile is nobody's, and its lock is free", async (scene) => {
  const { one, table } = scene;
  const lease = await one.leases.take({ ...NAR, isDone: () => Promise.resolve(true) });
  assert.deepEqual([lease.kind, table.count], ["done", 0]);
});

for (
  const [reason, tries, waitMs] of [
    ["redis_error", 3, 250],
    ["circuit_breaker", 1, 0],
  ] as const
) {
  const how = tries === 1 ? "once" : "again";
  sharedTest(`locks that fail with ${reason} are asked ${how}, then not needed`, async (scene) => {
    let asked = 0;
    const failing = failingLocks(() => {
      asked++;
      return new LocksUnavailable(reason, "away");
    });
    const one = scene.member(3, { locks: failing });
    const startedAtMs = clock.nowMs();
    assert.equal(await one.leases.take(NAR), UNLOCKED);
    assert.deepEqual([asked, clock.nowMs() - startedAtMs], [tries, waitMs]);
    const failed = `{type="download",reason="${reason}",mode="distributed"}`;
    assert.deepEqual(await one.counted("lock_failures_total"), { [failed]: tries });
    assert.deepEqual(one.said, [["warn", "failed to acquire lock"]]);
    assert.equal(one.lines[0]?.["reason"], reason);
  });
}

sharedTest(
  "where the shared locks fail, the process's own exclude its other work",
  async (scene) => {
    const own = new PlayedLocks();
    const locks = failingLocks(() => new LocksUnavailable("circuit_breaker", "away"));
    const one = scene.member(3, { locks, ownLocks: own.of({ member: scene.one.id }) });
    const lease = await one.leases.take(NAR);
    assert.deepEqual([lease.kind, own.count], ["ours", 1]);
    assert.equal((await one.leases.take(NAR)).kind, "theirs");
    await lease[Symbol.asyncDispose]();
    assert.equal(own.count, 0);
    const local = '{type="download",result="success",mode="local"}';
    assert.equal((await one.counted("lock_acquisitions_total"))[local], 1);
  },
);

sharedTest("the lock of a member without a row is free before it is taken", async (scene) => {
  const { other } = scene;
  const held = await other.leases.take(NAR);
  const members = { find: () => Promise.resolve(undefined) };
  const one = scene.member(3, { members });
  const startedAtMs = clock.nowMs();
  await using lease = await one.leases.take(NAR);
  assert.equal(lease.kind, "ours");
  // It is asked for, its holder is read, it is freed, and asked for again: nobody waits.
  assert.equal(clock.nowMs() - startedAtMs, 4 * CALL_MS);
  assert.deepEqual(one.said[0], ["info", "lock of an absent member freed"]);
  assert.deepEqual([one.lines[0]?.["member"], one.lines[0]?.["hash"]], [other.id, "a"]);
  await held[Symbol.asyncDispose]();
  assert.equal(scene.table.count, 1, "its end frees no other's lock");
});

sharedTest("a holder whom the database cannot tell keeps its lock", async (scene) => {
  await using _held = await scene.other.leases.take(NAR);
  const members = { find: () => Promise.resolve("unknown" as const) };
  const one = scene.member(3, { members });
  assert.equal(await one.leases.take({ ...NAR, mayStream: true }), UNLOCKED);
  assert.equal(await one.leases.otherHolder(NAR), undefined);
});

sharedTest("a lock that cannot be freed is left to its time", async (scene) => {
  const { one, other, table } = scene;
  await using _held = await other.leases.take(NAR);
  const holder = { member: other.id, token: "another" };
  await one.leases.free(NAR, holder);
  assert.equal(table.count, 1, "somebody has it anew");
  table.isAway = true;
  await one.leases.free(NAR, holder);
  assert.deepEqual(one.said.at(-1), ["debug", "lock not freed"]);
});

sharedTest("the holder is another member with a row, and nobody else", async (scene) => {
  const { one, other } = scene;
  assert.equal(await one.leases.otherHolder(NAR), undefined);
  await using _held = await other.leases.take(NAR);
  assert.equal((await one.leases.otherHolder(NAR))?.holder.member, other.id);
  assert.equal(await other.leases.otherHolder(NAR), undefined, "that is itself");
  const strict = scene.member(3, { members: { find: () => Promise.resolve(undefined) } });
  assert.equal(await strict.leases.otherHolder(NAR), undefined);
  scene.table.isAway = true;
  assert.equal(await one.leases.otherHolder(NAR), undefined);
});

for (const url of ["ftp://10.0.0.1", "http://"]) {
  sharedTest(`nobody streams from a holder at ${url}`, async (scene) => {
    await using _held = await scene.other.leases.take(NAR);
    const one = scene.member(3, { members: { find: async (member) => ({ member, url }) } });
    assert.equal((await one.leases.otherHolder(NAR))?.url, undefined);
  });
}

sharedTest("a NAR that another member streams is counted as that member's", async (scene) => {
  await using _held = await scene.other.leases.take(NAR);
  const url = "http://10.0.0.1:8501";
  const one = scene.member(3, { members: { find: async (member) => ({ member, url }) } });
  const startedAtMs = clock.nowMs();
  assert.equal((await one.leases.take({ ...NAR, mayStream: true })).kind, "theirs");
  assert.equal(clock.nowMs() - startedAtMs, 2 * CALL_MS, "nobody waits");
  assert.deepEqual(await one.counted("lock_acquisitions_total"), { [FAILURE]: 1 });
  assert.deepEqual(await one.counted("lock_failures_total"), {});
});

const AGAIN: Line = ["info", "locks are acquired again"];

sharedTest("a probe leaves no lock, and without an outage nobody hears of it", async (scene) => {
  const { one, table } = scene;
  await one.leases.probe();
  assert.equal(table.count, 0);
  table.isAway = true;
  await one.leases.probe();
  assert.deepEqual(one.said, []);
});

sharedTest("a probe ends the outage of locks that did not answer, once they do", async (scene) => {
  const { one, table } = scene;
  table.isAway = true;
  assert.equal(await one.leases.take(NAR), UNLOCKED);
  await one.leases.probe();
  assert.ok(!one.said.some(([, msg]) => msg === AGAIN[1]));
  table.isAway = false;
  await one.leases.probe();
  assert.deepEqual([one.said.at(-1), table.count], [AGAIN, 0]);
});

sharedTest("a probe ends the outage of a lock that was held once it is free", async (scene) => {
  const { one, other } = scene;
  const held = await other.leases.take(NAR);
  assert.equal(await one.leases.take(NAR), UNLOCKED);
  await one.leases.probe();
  assert.ok(!one.said.some(([, msg]) => msg === AGAIN[1]), "it is still held");
  await held[Symbol.asyncDispose]();
  await one.leases.probe();
  assert.deepEqual(one.said.at(-1), AGAIN);
});

function failingLocks(errorOf: () => Error): Locks {
  const fail = () => Promise.reject(errorOf());
  return {
    ...{ tryAcquire: fail, holderOf: fail, free: fail },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
