import { Failure } from "../base/failure.ts";
import type { MemberId } from "../base/member_id.ts";

/** Names one piece of work that one member at a time should do. */
export type LockName = string;

/** A member that holds leases. Only its row in the database says where others reach it. */
export interface HolderFacts {
  readonly member: MemberId;
}

/** The holder of one lease. */
export interface Holder extends HolderFacts {
  /** Differs for each lease. */
  readonly token: string;
}

/** A lock held for a limited time. Disposing of it releases the lock. Twice is as once. */
export interface Lease extends AsyncDisposable {
  /**
   * Fires when another member may have the lock. The work may go on all the same: a lock only
   * saves work.
   */
  readonly lost: AbortSignal;
}

/**
 * Locks that save work. No correctness rests on them. Each method throws a LocksUnavailable when it
 * cannot tell.
 */
export interface Locks extends AsyncDisposable {
  /**
   * Resolves to a lease that is renewed until it is disposed; `undefined`: a member has one.
   * `ttlMs` after its holder's death it is free. Throws the reason of a signal that has fired.
   */
  tryAcquire(name: LockName, ttlMs: number, signal?: AbortSignal): Promise<Lease | undefined>;
  holderOf(name: LockName): Promise<Holder | undefined>;
  /** Frees the lock of a holder that is gone, unless another has acquired it since. */
  free(name: LockName, holder: Holder): Promise<void>;
}

/** Why the locks did not answer. Label values: the set is closed. */
export type UnavailableReason = "redis_error" | "circuit_breaker";

/** The locks do not answer. */
export class LocksUnavailable extends Failure {
  readonly reason: UnavailableReason;

  constructor(reason: UnavailableReason, message: string, cause?: unknown) {
    super("unavailable", message, {}, cause);
    this.reason = reason;
  }
}
