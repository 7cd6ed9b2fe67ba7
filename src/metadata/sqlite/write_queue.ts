import type { DatabaseSync } from "node:sqlite";
import { Failure, messageOf } from "../../base/failure.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import { type Change, closedFailure, type WriteOptions } from "../metadata_store.ts";
import type { ChangeApplier } from "./change_applier.ts";
import type { Statements } from "./statements.ts";

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

type TransactionStatements = Pick<
  Statements,
  "begin" | "commit" | "rollback" | "rowsWritten" | "raiseRevision"
>;

/** The write transactions of one connection, which it owns. */
export class Transactions implements AsyncDisposable {
  readonly #database: DatabaseSync;
  readonly #statements: TransactionStatements;
  readonly #checkpoints: Checkpoints;
  readonly #raised: () => void;
  /** All rows that this connection has written; `undefined` if that must be read. */
  #rows: number | undefined;

  /** `raised` is called after each commit that has raised the revision. */
  constructor(
    database: DatabaseSync,
    statements: Statements,
    raised: () => void = () => {},
  ) {
    this.#database = database;
    this.#statements = statements;
    this.#checkpoints = new Checkpoints(database.location());
    this.#raised = raised;
  }

  /**
   * Runs the synchronous `work` in one transaction. If it writes, other processes drop the rows
   * that they hold in memory, unless `keepsRevision` is set. Throws when nothing was written.
   */
  within<Value>(
    work: () => Value,
    { keepsRevision = false }: { readonly keepsRevision?: boolean } = {},
  ): Value {
    const { begin, commit, rollback, raiseRevision } = this.#statements;
    begin.run();
    const before = this.#rows ?? this.#rowsWritten();
    this.#rows = undefined;
    let value: Value;
    let rows: number;
    let isRaised = false;
    try {
      value = work();
      rows = this.#rowsWritten();
      isRaised = !keepsRevision && rows !== before;
      if (isRaised) rows += Number(raiseRevision.run().changes);
      commit.run();
    } catch (error) {
      try {
        rollback.run();
      } catch {
        // After some errors, such as a full disk, SQLite has rolled back by itself.
      }
      throw error;
    }
    this.#rows = rows;
    this.#checkpoints.committed(rows);
    if (isRaised) this.#raised();
    return value;
  }

  /** Resolves when large writes do not disturb a checkpoint. */
  async ready(): Promise<void> {
    await this.#checkpoints.idle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#checkpoints[Symbol.asyncDispose]();
    this.#database.close();
  }

  #rowsWritten(): number {
    return Number(this.#statements.rowsWritten.get()?.["count"]);
  }
}

/** The Worker's global scope. */
export interface CheckpointScope {
  onmessage: ((event: MessageEvent<string>) => void) | null;
  postMessage(message: undefined): void;
}

const WORKER_URL = new URL("./checkpoint_worker.ts", import.meta.url);

/** Rows between two checkpoints. They dirty 10 to 60 MiB of pages, depending on their places. */
const ROWS_MAX = 8_000;

/** Each pass after the first copies the little that was written during the one before. */
const PASSES_MAX = 4;

/**
 * Copies the write-ahead log into the database file in a Worker: two syncs and thousands of writes
 * would stop requests for 100 to 200 ms. The first checkpoint starts the Worker. After an error the
 * Worker tries again some thousand rows later. If the log becomes long, SQLite copies it itself
 * (`wal_autocheckpoint`).
 */
class Checkpoints implements AsyncDisposable {
  readonly #path: string | null;
  #worker: Worker | undefined;
  #running: Promise<void> | undefined;
  #closed = false;
  #rows = 0;
  #rowsCopied = 0;

  /** `null` for a database in memory, which has no log. */
  constructor(path: string | null) {
    this.#path = path;
  }

  /**
   * Starts a checkpoint when it is due. Call it after each commit, with the count of all rows that
   * the connection has written.
   */
  committed(rows: number): void {
    this.#rows = rows;
    if (this.#path === null || this.#running !== undefined || this.#closed) return;
    if (rows - this.#rowsCopied < ROWS_MAX) return;
    this.#running = this.#run(this.#path).finally(() => this.#running = undefined);
  }

  /** Resolves when no checkpoint is running: large writes that can wait do so. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.#running;
    this.#worker?.terminate();
  }

  /** Copies again the pages written meanwhile: only a fully copied log starts anew. */
  async #run(path: string): Promise<void> {
    for (let pass = 0; pass < PASSES_MAX && this.#rowsCopied !== this.#rows; pass++) {
      const rows = this.#rows;
      await this.#copy(path);
      this.#rowsCopied = rows;
      if (this.#closed) return;
    }
  }

  async #copy(path: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const worker = this.#worker ??= new Worker(WORKER_URL, { type: "module" });
    worker.onmessage = () => resolve();
    worker.onerror = (event) => {
      // An unhandled error would end the process.
      event.preventDefault();
      worker.terminate();
      this.#worker = undefined;
      resolve();
    };
    worker.postMessage(path);
    await promise;
  }
}

/** SQLite's primary result codes that larder tells apart: https://www.sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
const SQLITE_IOERR = 10;
export const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
export const SQLITE_CONSTRAINT = 19;

/** The primary result code of an error of `node:sqlite`; `undefined` for any other error. */
export function resultCodeOf(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : undefined;
}
