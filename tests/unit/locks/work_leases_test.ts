import assert from "node:assert/strict";
import type { LeaseJob } from "../../../src/locks/lease_jobs.ts";
import { UNLOCKED } from "../../../src/locks/leases.ts";
import { MemberLeases } from "../../../src/locks/work_leases.ts";
import type { NarName } from "../../../src/nix/nar_name.ts";
import type { StorePathHash } from "../../../src/nix/store_path.ts";

const NAR = `${"1".repeat(52)}.nar.xz` as NarName;
const PATH = "0".repeat(32) as StorePathHash;
const HOLDER = { member: "host.2.other", token: "token" } as const;
const URL = "http://127.0.0.1:8501";
const isDone = () => Promise.resolve(false);

/** Leases that note their jobs. Another member holds each lock; to free one waits for `freed`. */
function noted(
  given: { readonly downloadTtlMs?: number; readonly url?: string | undefined } = {},
) {
  const { downloadTtlMs, url } = { downloadTtlMs: 60_000, url: URL, ...given };
  const jobs: LeaseJob[] = [];
  const freed = Promise.withResolvers<void>();
  const leases = new MemberLeases({
    leases: {
      take: (job) => Promise.resolve(UNLOCKED).finally(() => jobs.push(job)),
      probe: () => Promise.resolve(),
      otherHolder: () => Promise.resolve({ holder: HOLDER, url }),
      free(job) {
        jobs.push(job);
        return freed.promise;
      },
    },
    ...{ downloadTtlMs, lruTtlMs: 90_000 },
    retryPolicy: { retriesMax: 1, initialDelayMs: 1, maxDelayMs: 1, hasJitter: false },
  });
  return { leases, jobs, freed: freed.resolve };
}

Deno.test("work leases: the lock of a narinfo lives five seconds at most, one of work its time", async () => {
  const { leases, jobs } = noted();
  await leases.narinfo(PATH, isDone);
  await leases.nar(NAR, isDone);
  await leases.eviction();
  assert.deepEqual(jobs.map(({ ttlMs }) => ttlMs), [5_000, 60_000, 90_000]);

  const short = noted({ downloadTtlMs: 2_000 });
  await short.leases.narinfo(PATH, isDone);
  assert.deepEqual(short.jobs.map(({ ttlMs }) => ttlMs), [2_000]);
});

Deno.test("work leases: those that wait for a narinfo do not all look at one time", async () => {
  const { leases, jobs } = noted();
  await leases.narinfo(PATH, isDone);
  assert.deepEqual(jobs.map(({ retryPolicy }) => retryPolicy.hasJitter), [true]);
});

Deno.test("work leases: who downloads a NAR is of use where others reach it", async () => {
  const { leases, jobs } = noted();
  assert.deepEqual(await leases.holderOf(NAR), { url: URL });
  assert.equal(await noted({ url: undefined }).leases.holderOf(NAR), undefined);
  await leases.nar(NAR, isDone);
  await leases.narinfo(PATH, isDone);
  assert.deepEqual(jobs.map(({ mayStream }) => mayStream), [true, undefined]);
});

Deno.test("work leases: a holder that stopped is only another once its lock is free", async () => {
  const { leases, jobs, freed } = noted();
  await leases.stopped(NAR, { url: "http://127.0.0.1:1" });
  assert.deepEqual(jobs, []);

  let isOver = false;
  const stopped = leases.stopped(NAR, { url: URL }).then(() => isOver = true);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual([jobs.map(({ key }) => key), isOver], [[NAR], false]);
  freed();
  await stopped;
});
