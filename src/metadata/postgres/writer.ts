import { Buffer } from "node:buffer";
import { Failure, messageOf } from "../../base/failure.ts";
import { NOBODY } from "../../base/member_id.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { narNameOf, publishIdOf, type StoredName } from "../../nix/stored_name.ts";
import { dice } from "../../runtime/current.ts";
import {
  type Change,
  closedFailure,
  DOCUMENTS_GOING_MAX,
  IntentLost,
  Irreplaceable,
  NarNameTaken,
  Outdated,
  ReservationLost,
} from "../metadata_store.ts";
import { AWAY_MAX_MS, type Database } from "./database.ts";

/** The functions of the database that run once. */
type Operation =
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

/** Keys with a lock each. More share one lock, so that the server's table of locks suffices. */
const KEYS_MAX = 512;

/** The argument of the function `apply_changes` in the database. */
interface EncodedLists {
  readonly lists: readonly (readonly unknown[])[];
  /** Store paths whose own rows change. */
  readonly paths: readonly string[];
  readonly nars: readonly string[];
  /** Store paths that must have an id. */
  readonly hashes: readonly string[];
  /** True: too many keys, or protection may change. */
  readonly whole: boolean;
  readonly documents: boolean;
}

/** Lists of changes as JSON, with the keys of the rows that they change. */
function encodeLists(lists: readonly (readonly Change[])[]): EncodedLists {
  const keys = new Keys();
  for (const changes of lists) for (const change of changes) keys.add(change);
  const { paths, nars, hashes, isWhole, documents } = keys;
  return {
    lists: lists.map((changes) => changes.map(encode)),
    paths: [...paths],
    nars: [...nars],
    hashes: [...hashes],
    whole: isWhole || paths.size + nars.size > KEYS_MAX,
    documents,
  };
}

/** The argument of `touch`; `undefined` where a change is no use. */
export function encodeTouches(changes: readonly Change[]): Record<string, unknown> | undefined {
  const narinfos = new Map<string, number>();
  const nars = new Map<string, number>();
  const documents = new Map<string, number>();
  const raise = (touches: Map<string, number>, key: string, atMs: number) =>
    void touches.set(key, Math.max(atMs, touches.get(key) ?? atMs));
  for (const change of changes) {
    if (change.kind === "touch-narinfo") raise(narinfos, change.storePathHash, change.atMs);
    else if (change.kind === "touch-nar") raise(nars, change.narName, change.atMs);
    else if (change.kind === "touch-document") raise(documents, change.path, change.atMs);
    else return undefined;
  }
  return {
    narinfos: Object.fromEntries(narinfos),
    nars: Object.fromEntries(nars),
    documents: Object.fromEntries(documents),
  };
}

class Keys {
  readonly paths = new Set<string>();
  readonly nars = new Set<string>();
  readonly hashes = new Set<string>();
  isWhole = false;
  documents = false;

  add(change: Change): void {
    switch (change.kind) {
      case "put-narinfo":
        this.#path(change.row.storePathHash);
        this.nars.add(change.nar.name);
        for (const reference of change.references) this.hashes.add(reference);
        return;
      case "put-signed":
      case "forget-signed":
        this.paths.add(change.storePathHash);
        return;
      case "remove-narinfo":
      case "remove-pin":
      case "roll-pin":
        this.#path(change.storePathHash);
        this.isWhole = true;
        return;
      case "unpin-name":
        this.isWhole = true;
        return;
      case "put-pin":
        this.#path(change.pin.storePathHash);
        this.isWhole = true;
        return;
      case "stage-nar":
        this.nars.add(change.nar.name);
        return;
      case "put-source":
      case "touch-nar":
      case "remove-nar":
        this.nars.add(change.narName);
        return;
      case "touch-narinfo":
        this.paths.add(change.storePathHash);
        return;
      case "put-document":
      case "remove-document":
        this.documents = true;
        return;
      case "check-document":
      case "touch-document":
        return;
      case "nar-kept":
        this.nars.add(narNameOf(change.file.at));
        return;
      default:
        this.nars.add(narNameOf(change.at));
    }
  }

  #path(hash: string): void {
    this.paths.add(hash);
    this.hashes.add(hash);
  }
}

/** A change as JSON can hold it and the database can take it apart. */
function encode(change: Change): unknown {
  switch (change.kind) {
    case "put-narinfo":
      if (change.onlyIf === undefined) return change;
      return { ...change, onlyIf: { ...change.onlyIf, ...objectOf(change.onlyIf.at) } };
    case "nar-kept": {
      const { file, replaces, ...rest } = change;
      const former = replaces && { replaces: { ...replaces, ...objectOf(replaces.at) } };
      return { ...rest, ...file, ...objectOf(file.at), ...former };
    }
    case "nar-taken":
      return { ...change, ...objectOf(change.at), owner: NOBODY };
    case "nar-publishing":
    case "nar-sealed":
    case "nar-broken":
    case "nar-marked":
    case "nar-stuck":
    case "nar-gone":
      return { ...change, ...objectOf(change.at) };
    case "put-document": {
      const pieces = change.pieces.map((piece) => Buffer.from(piece).toString("base64"));
      const { bodyBytes: size, ...facts } = change.document;
      const document = { ...facts, size };
      return { ...change, document, pieces, goingMax: DOCUMENTS_GOING_MAX };
    }
    default:
      return change;
  }
}

function objectOf(at: StoredName): { readonly nar: string; readonly id: string } {
  return { nar: narNameOf(at), id: publishIdOf(at) };
}
