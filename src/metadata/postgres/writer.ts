import { Failure, messageOf } from "../../base/failure.ts";
import type { StoredName } from "../../nix/stored_name.ts";
import { dice } from "../../runtime/current.ts";
import {
  type Change,
  closedFailure,
  IntentLost,
  Irreplaceable,
  NarNameTaken,
  Outdated,
  ReservationLost,
} from "../metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { AWAY_MAX_MS, type Database } from "./database.ts";
import { encodeLists } from "./encoded_changes.ts";

/** The functions of the database that run once. */
export type Operation =
  | "touch"
  | "evict"
  | "expire"
  | "sweep_rows"
  | "protect"
  | "recount"
  | "record_history";

/** Lists in one transaction: the commit costs more than most of them. */
const LISTS_MAX = 64;

/** References in one transaction, beyond the first list: their text stops this thread for 1 ms. */
const REFERENCES_MAX = 4_000;

/** The longest transaction: a list of ten thousand changes, on a slow server. */
const WRITE_MAX_MS = 60_000;

interface Settle {
  readonly resolve: (outcome: WriteOutcome) => void;
  readonly reject: (reason: unknown) => void;
}

type PendingWrite =
  & Settle
  & (
    | { readonly changes: readonly Change[]; readonly mustWait: boolean }
    | { readonly operation: Operation; readonly argument: unknown }
  );

export type WriteOutcome = Readonly<Record<string, unknown>>;

/** The error of a list, as `apply_changes` reports it. */
interface ListError {
  readonly code: string;
  readonly message: string;
  readonly detail: string;
}

/** SQLSTATE of the refusals that larder's own functions raise. */
const REFUSED = "LD001";

/**
 * The write transactions of this process, one after the other in the order of the calls. A number
 * goes with each: the database runs it once, even if larder lost the answer and sends it again.
 */
export class Writer implements AsyncDisposable {
  readonly #database: Pick<Database, "query">;
  /** Names this process in the database and in its notices. */
  readonly id = dice.uuid();
  #sequence = 0;
  readonly #pending: PendingWrite[] = [];
  #running: Promise<void> | undefined;
  /** The failure of a database that is away, while a write waits for its return. */
  #away: Failure | undefined;
  #closed = false;

  constructor(database: Pick<Database, "query">) {
    this.#database = database;
  }

  /** Lists that wait together share a transaction; each is still all or nothing. */
  async apply(changes: readonly Change[], mustWait: boolean): Promise<void> {
    await this.#add((settle) => ({ ...settle, changes, mustWait }));
  }

  run(operation: Operation, argument: unknown = {}): Promise<WriteOutcome> {
    return this.#add((settle) => ({ ...settle, operation, argument }));
  }

  /** Writes the lists that wait. If the database is away, their calls reject. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#running;
    const text = "DELETE FROM writer WHERE id = $1 OR at < now() - interval '7 days'";
    await this.#database.query({ text, values: [this.id] }, 0).catch(() => undefined);
  }

  #add(write: (settle: Settle) => PendingWrite): Promise<WriteOutcome> {
    if (this.#closed) return Promise.reject(closedFailure());
    return new Promise((resolve, reject) => {
      this.#pending.push(write({ resolve, reject }));
      if (this.#away !== undefined) this.#refuse(this.#away);
      this.#running ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    // The lists of one turn of the event loop share a transaction.
    await Promise.resolve();
    for (let batch = this.#next(); batch.length > 0; batch = this.#next()) {
      try {
        await this.#write(batch);
      } catch (error) {
        for (const { reject } of batch) reject(postgresWriteFailure(error));
      }
    }
    // At once: a write that comes later starts anew.
    this.#running = undefined;
  }

  /** The first write, with the lists behind it that are like it. */
  #next(): readonly PendingWrite[] {
    const [first] = this.#pending;
    if (first === undefined) return [];
    if (!("changes" in first)) return this.#pending.splice(0, 1);
    const isOther = (write: PendingWrite) =>
      !("changes" in write) || write.mustWait !== first.mustWait;
    const end = this.#pending.findIndex(isOther);
    return this.#pending.splice(0, batchLength(this.#pending, end < 0 ? Infinity : end));
  }

  async #write(batch: readonly PendingWrite[]): Promise<void> {
    const [first] = batch;
    if (first === undefined) return;
    if (!("changes" in first)) {
      return first.resolve(await this.#once(first.operation, first.argument));
    }
    const lists = batch.flatMap((write) => "changes" in write ? [write.changes] : []);
    const outcome = await this.#once("apply", encodeLists(lists), first.mustWait);
    const errors = outcome["errors"] as readonly (ListError | null)[];
    for (const [index, { resolve, reject }] of batch.entries()) {
      const error = errors[index] ?? null;
      if (error === null) resolve({});
      else reject(refusalOf(error));
    }
  }

  async #once(operation: string, argument: unknown, mustWait = false): Promise<WriteOutcome> {
    const query = {
      name: "run_once",
      text: "SELECT run_once($1, $2, $3, $4) AS outcome",
      values: [this.id, ++this.#sequence, operation, JSON.stringify(argument)],
      query_timeout: WRITE_MAX_MS,
    };
    const [row] = await this.#database.query(query, AWAY_MAX_MS).catch(async (error) => {
      const isAway = error instanceof Failure && error.kind === "away";
      if (!isAway || !mustWait || this.#closed) throw error;
      this.#refuse(this.#away = error);
      try {
        return await this.#database.query(query, Infinity);
      } finally {
        this.#away = undefined;
      }
    });
    return row?.["outcome"] as WriteOutcome;
  }

  /** Clients wait no longer behind a write that waits for the database's return. */
  #refuse(away: Failure): void {
    const isPatient = (write: PendingWrite) => "changes" in write && write.mustWait;
    const { true: patient = [], false: refused = [] } = Object.groupBy(
      this.#pending,
      (write) => String(isPatient(write)) as "true" | "false",
    );
    this.#pending.splice(0, this.#pending.length, ...patient);
    for (const { reject } of refused) reject(away);
  }
}

/** The count of lists that one transaction takes, `countMax` at most. */
function batchLength(pending: readonly PendingWrite[], countMax: number): number {
  let references = 0;
  for (const [index, write] of pending.entries()) {
    for (const change of "changes" in write ? write.changes : []) {
      if (change.kind === "put-narinfo") references += change.references.length;
    }
    const isOver = index > 0 && references > REFERENCES_MAX;
    if (isOver || index >= Math.min(LISTS_MAX, countMax)) return index;
  }
  return pending.length;
}

/** The refusal of a list, by the kind that the functions of the database raise. */
function refusalOf({ code, message, detail }: ListError): Failure {
  if (code === REFUSED) {
    if (message === "taken") return new NarNameTaken(detail as NarName);
    if (message === "intent") return new IntentLost(detail as StoredName);
    if (message === "replaced") return new Irreplaceable(detail as StoredName);
    if (message === "reservation") return new ReservationLost(detail as StoredName);
    if (message === "outdated") return new Outdated(detail as StorePathHash);
  }
  return new Failure("broken", `Cannot write metadata: ${message}`, { code });
}

export function postgresWriteFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure("broken", `Cannot write metadata: ${messageOf(error)}`, {}, error);
}
