import { messageOf } from "../base/failure.ts";
import { areOfOneHost, type MemberId } from "../base/member_id.ts";
import { clock } from "../runtime/current.ts";
import type { LOCK_MODES } from "../telemetry/instruments/lock_labels.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { delayMs, type LeaseJob, lockNameOf, METRIC_TYPES } from "./lease_jobs.ts";
import {
  type Holder,
  type HolderFacts,
  type Lease,
  type LockName,
  type Locks,
  LocksUnavailable,
  type UnavailableReason,
} from "./locks.ts";

/** A lease of this member or another for one piece of work. Its end frees the lock, if any. */
export interface WorkLease extends AsyncDisposable {
  /**
   * "ours": do the work; without an answer of the locks others may do it, too. "theirs": the
   * holder does it. "done": it is done.
   */
  readonly kind: "ours" | "theirs" | "done";
}

/** A member, as its row in the database describes it. */
export interface LeaseMember extends HolderFacts {
  /** Other members reach it there; `undefined`: nowhere. */
  readonly url?: string | undefined;
}

/**
 * The members by their rows. Whoever can write locks can name any holder: without a row it is none.
 */
export interface MemberRows {
  /** `undefined`: no member has the id. "unknown": the database could not tell. Never rejects. */
  find(member: MemberId): Promise<LeaseMember | "unknown" | undefined>;
}

/** Another member that has a lock. */
export interface OtherHolder {
  readonly holder: Holder;
  /** This member reaches it there; `undefined`: nowhere. */
  readonly url: string | undefined;
}

export interface LeasesDeps {
  /** Shared by all members. */
  readonly locks: Locks;
  /** Used while the shared ones are unavailable; `undefined`: none are. */
  readonly ownLocks: Locks | undefined;
  /** This member. */
  readonly self: LeaseMember;
  /** The members by their rows in the database. */
  readonly members: MemberRows;
  readonly metrics: LeaseMetrics;
  readonly tracer: Tracer;
  readonly log: Logger;
}

/** How often the log has a line of level info while another member evicts. */
const LRU_LOG_EVERY_MS = 10_000;

/** The life of a probe's lock, if its member dies meanwhile. */
const PROBE_TTL_MS = 5_000;

/** Hints for a download of another member that takes longer than this one may wait. */
const STREAM_HINT = "give each member --cache-advertise-url, so that others read from it meanwhile";
const HELD_HINT = "another member fetches it, too slowly; check its log for its upstreams";

/** One call of `take`. */
interface LeaseCall {
  readonly job: LeaseJob;
  readonly startedAtMs: number;
  retries: number;
}

/** Leases of the shared locks, with retries, metrics, logs and spans. */
export class Leases {
  readonly #deps: LeasesDeps;
  readonly #outage;
  #lruLoggedAtMs = -Infinity;
  /** The lock that another member kept for too long. */
  #awaited: LockName | undefined;

  constructor(deps: LeasesDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "locks-acquired");
  }

  /** Never rejects. */
  async take(job: LeaseJob): Promise<WorkLease> {
    const facts = { "larder.lock.type": job.lockType };
    return await this.#deps.tracer.span({ name: "acquire lock", kind: "client", facts }, (span) => {
      const call: LeaseCall = { job, startedAtMs: clock.nowMs(), retries: 0 };
      return this.#take(call).then((lease) => {
        span.set({ "larder.lock.turn": lease.kind, "larder.lock.retries": call.retries });
        return lease;
      });
    });
  }

  /** Takes a lock that nobody else wants, to find out whether the locks answer. Never rejects. */
  async probe(): Promise<void> {
    const { locks, self } = this.#deps;
    const attempt = async () => {
      const lease = await locks.tryAcquire(`probe:${self.member}`, PROBE_TTL_MS);
      await lease?.[Symbol.asyncDispose]();
    };
    if (!this.#outage.isPresent) return await attempt().catch(() => undefined);
    await this.#outage.probe(async () => {
      await attempt();
      const isHeld = this.#awaited && await locks.holderOf(this.#awaited) !== undefined;
      if (isHeld) throw new LocksUnavailable("redis_error", "Cannot take lock: it is held");
    });
  }

  /** The other member that has the lock; `undefined` also where larder cannot tell. */
  async otherHolder(job: LeaseJob): Promise<OtherHolder | undefined> {
    try {
      const holder = await this.#deps.locks.holderOf(lockNameOf(job));
      if (holder === undefined || holder.member === this.#deps.self.member) return undefined;
      const row = await this.#rowOf(holder);
      if (row === undefined || row === "unknown") return undefined;
      return { holder, url: this.#urlOf(row) };
    } catch {
      return undefined;
    }
  }

  /** Frees the lock of a holder that is gone. Where the locks do not answer, it expires. */
  async free(job: LeaseJob, holder: Holder): Promise<void> {
    const { locks, log } = this.#deps;
    const { lockType: lock_type, hash } = job;
    const facts = { lock_type, member: holder.member, ...(hash === undefined ? {} : { hash }) };
    try {
      await locks.free(lockNameOf(job), holder);
      log.info("lock of an absent member freed", facts);
    } catch (error) {
      log.debug("lock not freed", { ...facts, error: messageOf(error) });
    }
  }

  async #take(call: LeaseCall): Promise<WorkLease> {
    const { job } = call;
    for (;;) {
      try {
        const lease = await this.#tryOnce(call);
        if (lease !== undefined) {
          // Another member's lock does not show that this one can acquire any.
          if (lease.kind === "ours") this.#outage.worked();
          return lease;
        }
        if (call.retries >= job.retryPolicy.retriesMax) return await this.#timedOut(call);
      } catch (error) {
        const isOpen = error instanceof LocksUnavailable && error.reason === "circuit_breaker";
        this.#deps.metrics.failed(job, isOpen ? "circuit_breaker" : "redis_error");
        if (isOpen || call.retries >= job.retryPolicy.retriesMax) {
          return await this.#unlocked(call, error);
        }
      }
      await clock.pause(delayMs(job.retryPolicy, call.retries++));
      this.#deps.metrics.retried(job);
    }
  }

  /** `undefined`: try again later. Throws where the locks do not answer. */
  async #tryOnce(call: LeaseCall): Promise<WorkLease | undefined> {
    const { job } = call;
    const { locks } = this.#deps;
    const name = lockNameOf(job);
    const lease = await locks.tryAcquire(name, job.ttlMs);
    if (lease !== undefined) return await this.#ours(lease, call);
    const holder = await locks.holderOf(name);
    if (await job.isDone?.()) return DONE;
    const row = holder && await this.#rowOf(holder);
    if (row === "unknown") return undefined;
    if (row !== undefined) {
      return job.mayStream && this.#urlOf(row) !== undefined ? this.#lost(job) : undefined;
    }
    if (holder !== undefined) await this.free(job, holder);
    const freed = await locks.tryAcquire(name, job.ttlMs);
    return freed && await this.#ours(freed, call);
  }

  /** Another member may have done the work before the lock was free. */
  async #ours(lease: Lease, call: LeaseCall): Promise<WorkLease> {
    const ours = this.#workLeaseOf(lease, call, "distributed");
    if (!await call.job.isDone?.()) return ours;
    await ours[Symbol.asyncDispose]();
    return DONE;
  }

  #workLeaseOf(lease: Lease, call: LeaseCall, mode: LockMode): WorkLease {
    const { metrics } = this.#deps;
    const { job } = call;
    const atMs = clock.nowMs();
    metrics.acquired(job, mode);
    this.#logAcquired(call);
    let isOver = false;
    return {
      kind: "ours",
      async [Symbol.asyncDispose]() {
        if (!isOver) metrics.released(job, mode, (clock.nowMs() - atMs) / 1_000);
        isOver = true;
        await lease[Symbol.asyncDispose]();
      },
    };
  }

  #logAcquired(call: LeaseCall): void {
    const { lockType } = call.job;
    const { log } = this.#deps;
    if (!lockType.startsWith("download:")) return log.debug("acquired lock", factsOf(call));
    const level = lockType === "download:nar" ? "info" : "debug";
    log[level]("acquired download lock", factsOf(call));
  }

  /** A live member has kept the lock for longer than any request may wait. */
  async #timedOut(call: LeaseCall): Promise<WorkLease> {
    const { metrics, log } = this.#deps;
    const { job } = call;
    metrics.failed(job, "timeout");
    if (job.lockType === "lru") {
      const nowMs = clock.nowMs();
      // A member that needs room asks several times a second.
      const isNews = nowMs >= this.#lruLoggedAtMs + LRU_LOG_EVERY_MS;
      log[isNews ? "info" : "debug"]("another instance is running LRU", factsOf(call));
      if (isNews) this.#lruLoggedAtMs = nowMs;
    }
    if (!job.lockType.startsWith("download:")) return HELD_BY_OTHER;
    const hint = job.lockType === "download:nar" ? STREAM_HINT : HELD_HINT;
    const facts = { ...factsOf(call), reason: "timeout", hint };
    this.#awaited = lockNameOf(job);
    this.#outage.failed("lock-not-acquired", facts, "timeout");
    return UNLOCKED;
  }

  async #unlocked(call: LeaseCall, error: unknown): Promise<WorkLease> {
    const { ownLocks } = this.#deps;
    if (ownLocks !== undefined) {
      const lease = await ownLocks.tryAcquire(lockNameOf(call.job), call.job.ttlMs);
      return lease === undefined ? HELD_BY_OTHER : this.#workLeaseOf(lease, call, "local");
    }
    const reason = error instanceof LocksUnavailable ? error.reason : "redis_error";
    const facts = { ...factsOf(call), reason, error: messageOf(error) };
    this.#awaited = undefined;
    this.#outage.failed("lock-not-acquired", facts);
    return UNLOCKED;
  }

  #lost(job: LeaseJob): WorkLease {
    this.#deps.metrics.lost(job);
    return HELD_BY_OTHER;
  }

  /** The row of a holder. A process at this member's own URL is its predecessor: it is gone. */
  async #rowOf({ member }: Holder): Promise<LeaseMember | "unknown" | undefined> {
    const { self, members } = this.#deps;
    if (member === self.member) return self;
    const row = await members.find(member);
    if (row === undefined || row === "unknown") return row;
    const url = this.#urlOf(row);
    return url !== undefined && url === self.url ? undefined : row;
  }

  /** Where this member reaches the holder: a loopback address is of no use on another host. */
  #urlOf({ member, url }: LeaseMember): string | undefined {
    if (url === undefined || !HTTP_REGEXP.test(url) || !URL.canParse(url)) return undefined;
    const isHere = areOfOneHost(member, this.#deps.self.member);
    return isHere || !LOOPBACK_REGEXP.test(new URL(url).hostname) ? url : undefined;
  }
}

const HTTP_REGEXP = /^https?:/;
const LOOPBACK_REGEXP = /^(?:127\.[\d.]+|\[::1\]|localhost)$/;

const nothing = () => Promise.resolve();
/** A lease without a lock. */
export const UNLOCKED: WorkLease = { kind: "ours", [Symbol.asyncDispose]: nothing };
const HELD_BY_OTHER: WorkLease = { kind: "theirs", [Symbol.asyncDispose]: nothing };
const DONE: WorkLease = { kind: "done", [Symbol.asyncDispose]: nothing };

function factsOf({ job: { lockType, hash }, startedAtMs, retries }: LeaseCall) {
  return {
    ...(hash === undefined ? {} : { hash }),
    lock_type: lockType,
    duration_ms: clock.nowMs() - startedAtMs,
    retries,
  };
}

/** A value of the label `mode`. */
type LockMode = typeof LOCK_MODES[number];

/** Counts locks, and times them. */
export class LeaseMetrics {
  readonly #metrics: Metrics;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  acquired({ lockType }: LeaseJob, mode: LockMode): void {
    const type = METRIC_TYPES[lockType];
    if (type === undefined) return;
    this.#metrics.count("lock_acquisitions_total", { type, result: "success", mode });
  }

  released({ lockType }: LeaseJob, mode: LockMode, seconds: number): void {
    const type = METRIC_TYPES[lockType];
    if (type === undefined) return;
    this.#metrics.histogram("lock_hold_duration_seconds", { type, mode }).observe(seconds);
  }

  /** Another member has the lock, and nobody waits for it. */
  lost({ lockType }: LeaseJob): void {
    const type = METRIC_TYPES[lockType];
    if (type === undefined) return;
    const labels = { type, result: "failure", mode: "distributed" } as const;
    this.#metrics.count("lock_acquisitions_total", labels);
  }

  /** "timeout": a living member had the lock during all attempts. */
  failed(job: LeaseJob, reason: UnavailableReason | "timeout"): void {
    this.lost(job);
    const type = METRIC_TYPES[job.lockType];
    if (type === undefined) return;
    this.#metrics.count("lock_failures_total", { type, reason, mode: "distributed" });
  }

  retried({ lockType }: LeaseJob): void {
    const type = METRIC_TYPES[lockType];
    if (type !== undefined) this.#metrics.count("lock_retry_attempts_total", { type });
  }
}
