import { dice } from "../../runtime/current.ts";
import type { Holder, HolderFacts, Lease, LockName, Locks } from "../locks.ts";

/** A lock that is held, and the signal of its lease. */
interface HeldLock {
  readonly holder: Holder;
  readonly lost: AbortController;
}

/** The locks of one process. A lease ends with its holder, so no time limits it. */
export class LocalLocks implements Locks {
  readonly #holder: HolderFacts;
  readonly #held = new Map<LockName, HeldLock>();

  constructor(holder: HolderFacts) {
    this.#holder = holder;
  }

  async tryAcquire(
    name: LockName,
    _ttlMs: number,
    signal?: AbortSignal,
  ): Promise<Lease | undefined> {
    signal?.throwIfAborted();
    if (this.#held.has(name)) return undefined;
    const holder = { ...this.#holder, token: dice.uuid() };
    const lost = new AbortController();
    this.#held.set(name, { holder, lost });
    return {
      lost: lost.signal,
      [Symbol.asyncDispose]: async () => void this.#take(name, holder),
    };
  }

  async holderOf(name: LockName): Promise<Holder | undefined> {
    return this.#held.get(name)?.holder;
  }

  async free(name: LockName, holder: Holder): Promise<void> {
    this.#take(name, holder)?.lost.abort();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  /** Removes the lock of this holder; `undefined` where it has none any more. */
  #take(name: LockName, { token }: Holder): HeldLock | undefined {
    const held = this.#held.get(name);
    if (held?.holder.token !== token) return undefined;
    this.#held.delete(name);
    return held;
  }
}
