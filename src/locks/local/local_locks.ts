import type { Holder, HolderFacts, Lease, LockName, Locks } from "../locks.ts";

/** The locks of one process. A lease ends with its holder, so no time limits it. */
export class LocalLocks implements Locks {
  readonly #holder: HolderFacts;
  readonly #held = new Map<LockName, Holder>();

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
    const holder = { ...this.#holder, token: crypto.randomUUID() };
    this.#held.set(name, holder);
    return {
      // The lock of a living process is never lost.
      lost: new AbortController().signal,
      [Symbol.asyncDispose]: () => this.free(name, holder),
    };
  }

  async holderOf(name: LockName): Promise<Holder | undefined> {
    return this.#held.get(name);
  }

  async free(name: LockName, { token }: Holder): Promise<void> {
    if (this.#held.get(name)?.token === token) this.#held.delete(name);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
