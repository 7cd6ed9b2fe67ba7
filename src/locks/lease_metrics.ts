import type { LOCK_MODES } from "../telemetry/instruments/lock_labels.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type LeaseJob, METRIC_TYPES } from "./lease_jobs.ts";
import type { UnavailableReason } from "./locks.ts";

/** A value of the label `mode`. */
export type LockMode = typeof LOCK_MODES[number];

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
