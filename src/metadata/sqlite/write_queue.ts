import { Failure, messageOf } from "../../base/failure.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import { type Change, closedFailure, type WriteOptions } from "../metadata_store.ts";
import type { ChangeApplier } from "./change_applier.ts";
import { resultCodeOf, SQLITE_BUSY, SQLITE_FULL, SQLITE_IOERR } from "./result_codes.ts";

interface QueuedChanges {
  readonly changes: readonly Change[];
  /** Deadline by clock.nowMs(): a lock that lasts longer is an error. */
  readonly untilMs: number;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** How long another process may hold the lock before a write fails. */
export const LOCKED_MAX_MS = 5_000;

/** The wait is in the event loop, not in SQLite, so that larder answers requests meanwhile. */
export const LOCKED_RETRY_MS = 50;

/** The pause after a long wait: each attempt stops the thread for 10 ms. */
const LOCKED_LONG_RETRY_MS = 250;

/** Lists in one transaction after a long lock: some 5 ms. */
const LISTS_MAX = 64;

/** References in one transaction, beyond the first list: some 5 ms. */
const REFERENCES_MAX = 512;

/** Lists of changes, written in the order of the calls. */
export class WriteQueue {
  readonly #applier: ChangeApplier;
  #pending: QueuedChanges[] = [];
  #flushing: Timer | undefined;
  #retry: Timer | undefined;
  #lockedSinceMs: number | undefined;

  constructor(applier: ChangeApplier) {
    this.#applier = applier;
  }

  /** Lists of the same turn share a transaction; each is still all or nothing. */
  write(changes: readonly Change[], { mustWait = false }: WriteOptions = {}): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const untilMs = mustWait ? Infinity : clock.nowMs() + LOCKED_MAX_MS;
      this.#pending.push({ changes, untilMs, resolve, reject });
      if (this.#retry === undefined) this.#flushSoon();
    });
  }

  /** Writes the queue; rejects lists that the database does not take within `limitMs`. */
  async close(limitMs: number): Promise<void> {
    const untilMs = clock.nowMs() + limitMs;
    for (;;) {
      this.#flush();
      if (this.#pending.length === 0) return;
      if (this.#lockedSinceMs !== undefined && clock.nowMs() >= untilMs) break;
      if (this.#lockedSinceMs !== undefined) await clock.pause(LOCKED_RETRY_MS);
    }
    this.#retry?.cancel();
    for (const write of this.#pending.splice(0)) write.reject(closedFailure());
  }

  /** Two turns of the event loop collect concurrent lists, without a timer's millisecond. */
  #flushSoon(): void {
    this.#flushing ??= clock.soon(() => {
      this.#flushing = clock.soon(() => this.#flush());
    });
  }

  #flush(): void {
    this.#flushing?.cancel();
    this.#retry?.cancel();
    this.#flushing = this.#retry = undefined;
    const writes = this.#pending.splice(0, batchLength(this.#pending));
    if (writes.length === 0) return;
    const errors = this.#applier.transaction(writes.map((write) => write.changes));
    const locked = writes.filter((write, index) => !settle(write, errors[index]));
    if (locked.length === 0) {
      this.#lockedSinceMs = undefined;
      if (this.#pending.length > 0) this.#flushSoon();
      return;
    }
    this.#lockedSinceMs ??= clock.nowMs();
    const now = clock.nowMs();
    this.#pending = [...locked, ...this.#pending].filter((write) => {
      if (write.untilMs > now) return true;
      write.reject(sqliteWriteFailure(errors.find((error) => error !== undefined)));
      return false;
    });
    if (this.#pending.length === 0) return;
    const isLong = now - this.#lockedSinceMs > LOCKED_MAX_MS;
    this.#retry = clock.after(isLong ? LOCKED_LONG_RETRY_MS : LOCKED_RETRY_MS, () => this.#flush());
  }
}

/** The count of lists that one transaction takes. */
function batchLength(pending: readonly QueuedChanges[]): number {
  let references = 0;
  for (const [index, { changes }] of pending.entries()) {
    for (const change of changes) {
      if (change.kind === "put-narinfo") references += change.references.length;
    }
    if (index === LISTS_MAX || index > 0 && references > REFERENCES_MAX) return index;
  }
  return pending.length;
}

/** False where the write is to be retried. */
function settle(write: QueuedChanges, error: unknown): boolean {
  if (error === undefined) write.resolve();
  else if (isLocked(error) || write.untilMs === Infinity && isDiskError(error)) return false;
  else write.reject(sqliteWriteFailure(error));
  return true;
}

/** Another process or connection has the lock. */
export function isLocked(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_BUSY;
}

/** A full disk, or another disk error that may pass. */
function isDiskError(error: unknown): boolean {
  const code = resultCodeOf(error);
  return code === SQLITE_FULL || code === SQLITE_IOERR;
}

export function sqliteWriteFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  // A lock passes: a retry may succeed.
  const kind = isLocked(error) ? "overloaded" : "broken";
  return new Failure(kind, `Cannot write metadata: ${messageOf(error)}`, {}, error);
}
