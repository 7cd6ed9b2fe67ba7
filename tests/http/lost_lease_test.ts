import assert from "node:assert/strict";
import type { MemberId } from "../../src/base/member_id.ts";
import { LeaseMetrics, Leases } from "../../src/locks/leases.ts";
import type { Holder, Locks } from "../../src/locks/locks.ts";
import { MemberLeases } from "../../src/locks/work_leases.ts";
import { SILENT } from "../../src/telemetry/logger.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { NO_TRACER } from "../../src/telemetry/tracer.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { Gate } from "../support/faults.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TestCache } from "../support/test_cache.ts";

const SELF = { member: "host.1.self" as MemberId };
const OTHER: Holder = { member: "host.2.other" as MemberId, token: "other" };
const HALF = 1_500_000;
Deno.test("lost lease: one lost in the middle of a download does not end it", async () => {
  const object = makeStoreObject({ name: "large", size: 2 * HALF });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  const gate = new Gate();
  upstream.breakNar(gate.fault);
  const locks = new LosingLocks();
  const parts = { upstreams: [upstream], leases: leasesBy(locks) };
  await using cache = await TestCache.open(parts);
  const path = await cache.narPath(object.storePathHash);
  gate.release(HALF);
  const answer = await cache.get(path);
  const reader = answer.body?.getReader();
  const first = (await reader?.read())?.value ?? new Uint8Array();
  assert.ok(first.length > 0 && first.length <= HALF);
  assert.ok(locks.held > 0, "the download has a lease");

  locks.lose();
  gate.open();

  const pieces = [first];
  for (let piece; (piece = await reader?.read()) && !piece.done;) pieces.push(piece.value);
  const { bytes } = await upstream.narFileOf(object);
  assertSameBytes(await new Blob(pieces).bytes(), bytes);
  await cache.downloadsOver();
  assert.equal(upstream.count(/^\/nar\//, "GET"), 1);
  assert.equal((await cache.narNames()).length, 1);
  assert.equal(locks.held, 0, "it is given back all the same");
  assert.deepEqual([...cache.logged("warn"), ...cache.logged("error")], []);
});

function leasesBy(locks: Locks): MemberLeases {
  const leases = new Leases({
    ...{
      locks,
      ownLocks: undefined,
      self: SELF,
      members: { find: async (member: MemberId) => ({ member }) },
    },
    ...{ metrics: new LeaseMetrics(new Metrics()), tracer: NO_TRACER, log: SILENT },
  });
  const retryPolicy = { retriesMax: 0, initialDelayMs: 1, maxDelayMs: 1, hasJitter: false };
  return new MemberLeases({ leases, downloadTtlMs: 1_000, lruTtlMs: 1_000, retryPolicy });
}

/** Gives every lease, until a test has another member acquire all locks. */
class LosingLocks implements Locks {
  readonly #lost = new AbortController();
  held = 0;

  lose(): void {
    this.#lost.abort(new Error("another member may have the lock"));
  }

  async tryAcquire() {
    if (this.#lost.signal.aborted) return undefined;
    this.held++;
    return { lost: this.#lost.signal, [Symbol.asyncDispose]: async () => void this.held-- };
  }

  async holderOf() {
    return this.#lost.signal.aborted ? OTHER : { ...SELF, token: "self" };
  }

  async free(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}
}
