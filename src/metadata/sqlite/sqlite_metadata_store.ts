import type { DatabaseSync } from "node:sqlite";
import { clearImmediate, setImmediate } from "node:timers";
import { Failure, messageOf } from "../../base/failure.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Change, MetadataStore, NarinfoRow, NarRecord, NarSource } from "../metadata_store.ts";
import { ChangeApplier } from "./change_applier.ts";
import {
  type NarColumns,
  type NarinfoColumns,
  readNarinfoRow,
  readNarRecord,
  readSource,
} from "./rows.ts";
import { prepareStatements, type Statements } from "./statements.ts";

interface PendingWrite {
  readonly changes: readonly Change[];
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** The metadata in one SQLite file. Point reads run on the calling thread: microseconds each. */
export class SqliteMetadataStore implements MetadataStore, AsyncDisposable {
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #applier: ChangeApplier;
  #pending: PendingWrite[] = [];
  #flushing: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#statements = prepareStatements(database);
    this.#applier = new ChangeApplier(this.#statements);
  }

  async findNarinfo(storePathHash: StorePathHash): Promise<NarinfoRow | undefined> {
    const row = this.#read("findNarinfo").get(storePathHash);
    if (row === undefined) return undefined;
    return readNarinfoRow(storePathHash, row as unknown as NarinfoColumns);
  }

  async findNar(narName: NarName): Promise<NarRecord | undefined> {
    const row = this.#read("findNar").get(narName);
    return row === undefined ? undefined : readNarRecord(row as unknown as NarColumns);
  }

  async sourcesOf(narName: NarName): Promise<readonly NarSource[]> {
    const rows = this.#read("sourcesOf").all(narName);
    return rows.map((row) => readSource(row as { upstream: string; location: string }));
  }

  async narinfosOf(narName: NarName): Promise<readonly StorePathHash[]> {
    return this.#hashes("narinfosOf", narName);
  }

  async referencesOf(storePathHash: StorePathHash): Promise<readonly StorePathHash[]> {
    return this.#hashes("referencesOf", storePathHash);
  }

  async coldest(countMax: number): Promise<readonly StorePathHash[]> {
    return this.#hashes("coldest", countMax);
  }

  /** Lists that come in the same turn share one transaction; each is still all or nothing. */
  async apply(changes: readonly Change[]): Promise<void> {
    if (this.#closed) throw closedFailure();
    if (changes.length === 0) return;
    await new Promise<void>((resolve, reject) => {
      this.#pending.push({ changes, resolve, reject });
      // Two turns of the event loop gather what comes at once, without a timer's millisecond.
      this.#flushing ??= setImmediate(() => {
        this.#flushing = setImmediate(() => this.#flush());
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#flush();
    this.#closed = true;
    this.#database.close();
  }

  #read(name: keyof Statements) {
    if (this.#closed) throw closedFailure();
    return this.#statements[name];
  }

  #hashes(name: keyof Statements, parameter: string | number): readonly StorePathHash[] {
    return this.#read(name).all(parameter).map((row) => row["hash"] as StorePathHash);
  }

  #flush(): void {
    clearImmediate(this.#flushing);
    this.#flushing = undefined;
    const writes = this.#pending;
    this.#pending = [];
    if (writes.length === 0) return;
    const errors = this.#applier.transaction(writes.map((write) => write.changes));
    for (const [index, write] of writes.entries()) {
      const error = errors[index];
      if (error === undefined) write.resolve();
      else write.reject(writeFailure(error));
    }
  }
}

function writeFailure(error: unknown): Failure {
  return new Failure("broken", `Cannot write metadata: ${messageOf(error)}`, {}, error);
}

function closedFailure(): Failure {
  return new Failure("broken", "Cannot use metadata: the database is closed");
}
