import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Lease } from "../locks.ts";

/** Renewals within the life of a lease: two may fail. */
const RENEWALS = 3;

export interface RedisLeaseParts {
  readonly ttlMs: number;
  /** Resolves to false when the lease is another's, or nobody's. */
  readonly renew: () => Promise<boolean>;
  /** Never rejects. */
  readonly free: () => Promise<void>;
}

/** A lease that renews itself until it is disposed. */
export class RedisLease implements Lease {
  readonly #parts: RedisLeaseParts;
  readonly #lost = new AbortController();
  readonly #timer: Timer;
  #renewedAtMs = clock.nowMs();
  #freeing: Promise<void> | undefined;

  constructor(parts: RedisLeaseParts) {
    this.#parts = parts;
    this.#timer = clock.every(parts.ttlMs / RENEWALS, () => void this.#renew());
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#freeing ??= this.#free();
  }

  #free(): Promise<void> {
    this.#timer.cancel();
    return this.#parts.free();
  }

  async #renew(): Promise<void> {
    const calledAtMs = clock.nowMs();
    try {
      if (await this.#parts.renew()) this.#renewedAtMs = calledAtMs;
      else this.#lose();
    } catch {
      // Redis may answer again in time.
      if (clock.nowMs() - this.#renewedAtMs >= this.#parts.ttlMs) this.#lose();
    }
  }

  #lose(): void {
    this.#timer.cancel();
    this.#lost.abort();
  }
}
