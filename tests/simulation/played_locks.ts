import { Failure } from "../../src/base/failure.ts";
import type { Holder, HolderFacts, Lease, LockName, Locks } from "../../src/locks/locks.ts";
import { LocksUnavailable } from "../../src/locks/locks.ts";
import { clock, dice } from "../../src/runtime/current.ts";

interface HeldLock {
  readonly holder: Holder;
  readonly lost: AbortController;
  freeAtMs: number;
}

/** The locks that all members of a world share. While `isAway`, nobody gets an answer. */
export class PlayedLocks {
  isAway = false;
  readonly #held = new Map<LockName, HeldLock>();

  /** The locks that somebody holds now. */
  get count(): number {
    return [...this.#held.values()].filter(({ freeAtMs }) => freeAtMs > clock.nowMs()).length;
  }

  /** The locks as one member sees them. */
  of(self: HolderFacts): Locks {
    const check = async () => {
      await clock.pause(1);
      if (this.isAway) throw new LocksUnavailable("redis_error", "Cannot reach the locks");
    };
    return {
      tryAcquire: async (name, ttlMs, signal) => {
        signal?.throwIfAborted();
        await check();
        return this.#acquire(name, ttlMs, self);
      },
      holderOf: async (name) => {
        await check();
        const held = this.#held.get(name);
        return held !== undefined && held.freeAtMs > clock.nowMs() ? held.holder : undefined;
      },
      free: async (name, { token }) => {
        await check();
        const held = this.#held.get(name);
        if (held?.holder.token === token) this.#held.delete(name);
        held?.lost.abort(new Failure("broken", "Cannot hold lock: it was freed"));
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }

  #acquire(name: LockName, ttlMs: number, self: HolderFacts): Lease | undefined {
    const held = this.#held.get(name);
    if (held !== undefined && held.freeAtMs > clock.nowMs()) return undefined;
    held?.lost.abort(new Failure("broken", "Cannot hold lock: it ran out"));
    const lost = new AbortController();
    const holder = { member: self.member, token: dice.uuid() };
    const own = { holder, lost, freeAtMs: clock.nowMs() + ttlMs };
    this.#held.set(name, own);
    const renewal = clock.every(ttlMs / 3, () => {
      if (this.isAway) return;
      if (this.#held.get(name) === own) own.freeAtMs = clock.nowMs() + ttlMs;
    });
    return {
      lost: lost.signal,
      [Symbol.asyncDispose]: async () => {
        renewal.cancel();
        if (this.#held.get(name) === own) this.#held.delete(name);
      },
    };
  }
}
