import assert from "node:assert/strict";
import type { HolderFacts, Locks } from "../../src/locks/locks.ts";
import { eventually } from "../support/eventually.ts";
import type { Clauses } from "./contract.ts";

/** The locks of one member, or of two that share them. */
export interface LocksScene {
  readonly one: Locks;
  readonly other: Locks;
  /** The holder of the leases of `one`. */
  readonly holder: HolderFacts;
}

const TTL_MS = 60_000;
const CONTENDERS = 50;

export const locksClauses: Clauses<LocksScene> = {
  "a lock is refused while it is held, and free once its lease is disposed": async (scene) => {
    const { one, other } = scene;
    const lease = await one.tryAcquire("a", TTL_MS);
    assert.ok(lease);
    assert.equal(await other.tryAcquire("a", TTL_MS), undefined);
    assert.equal(await one.tryAcquire("a", TTL_MS), undefined);

    await lease[Symbol.asyncDispose]();

    await using next = await other.tryAcquire("a", TTL_MS);
    assert.ok(next);
    assert.equal(lease.lost.aborted, false);
  },

  "of fifty that try at once, one acquires": async ({ one, other }) => {
    const tries = Array.from({ length: CONTENDERS }, (_, at) => (
      (at % 2 === 0 ? one : other).tryAcquire("a", TTL_MS)
    ));
    const leases = (await Promise.all(tries)).filter((lease) => lease !== undefined);
    assert.equal(leases.length, 1);
    await leases[0]?.[Symbol.asyncDispose]();
  },

  "locks of different names do not exclude each other": async ({ one, other }) => {
    await using a = await one.tryAcquire("a", TTL_MS);
    await using b = await other.tryAcquire("b", TTL_MS);
    assert.ok(a && b);
  },

  "holderOf() names the holder, and nothing without a lease": async ({ one, other, holder }) => {
    assert.equal(await other.holderOf("a"), undefined);
    {
      await using _lease = await one.tryAcquire("a", TTL_MS);
      const found = await other.holderOf("a");
      assert.deepEqual({ member: found?.member }, holder);
    }
    assert.equal(await other.holderOf("a"), undefined);
  },

  "a second disposal does not free the next holder's lock": async ({ one, other }) => {
    const lease = await one.tryAcquire("a", TTL_MS);
    await lease?.[Symbol.asyncDispose]();
    await using _next = await other.tryAcquire("a", TTL_MS);

    await lease?.[Symbol.asyncDispose]();

    assert.equal(await one.tryAcquire("a", TTL_MS), undefined);
  },

  "free() frees the lock of the named lease, and no later one": async ({ one, other }) => {
    const dead = await one.tryAcquire("a", TTL_MS);
    const holder = await other.holderOf("a");
    assert.ok(dead && holder);

    await other.free("a", holder);
    await using next = await other.tryAcquire("a", TTL_MS);
    assert.ok(next);
    await one.free("a", holder);

    assert.equal(await one.tryAcquire("a", TTL_MS), undefined);
    await dead[Symbol.asyncDispose]();
    assert.equal(await one.tryAcquire("a", TTL_MS), undefined);
  },

  "a lease whose lock another member frees is lost": async ({ one, other }) => {
    // Redis tells at the next renewal, after a third of the time.
    await using lease = await one.tryAcquire("a", 300);
    const holder = await other.holderOf("a");
    assert.ok(lease && holder);

    await other.free("a", holder);

    await eventually("the lease is lost", () => lease.lost.aborted);
  },

  "a lease outlives its time while its holder lives": async ({ one, other }) => {
    // A holder that stands still for all that time would lose its lease.
    const ttlMs = 3_000;
    await using lease = await one.tryAcquire("a", ttlMs);
    assert.ok(lease);
    const untilMs = performance.now() + 2 * ttlMs;
    await eventually("twice its time is over", async () => {
      await using next = await other.tryAcquire("a", ttlMs);
      assert.deepEqual([next, lease.lost.aborted], [undefined, false]);
      return performance.now() > untilMs;
    });
  },

  "a signal that has fired acquires nothing": async ({ one, other }) => {
    const reason = new Error("too late");
    await assert.rejects(one.tryAcquire("a", TTL_MS, AbortSignal.abort(reason)), reason);
    await using lease = await other.tryAcquire("a", TTL_MS);
    assert.ok(lease);
  },
};
