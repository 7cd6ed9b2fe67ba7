import type { DatabaseSync } from "node:sqlite";
import type { MemberId } from "../../src/base/member_id.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";

export type Row = Readonly<Record<string, unknown>>;

/** The database as one larder of a model has it open, and as its watcher does. */
export interface ModelConnection {
  readonly store: MetadataStore;
  /** False once its larder is dead, or has closed it. */
  readonly isOpen: boolean;
  /** The rows of a query that every dialect reads; at once where the database can. */
  rows(sql: string): readonly Row[] | Promise<readonly Row[]>;
  /** Differs once another larder has written; `undefined` where none can in between. */
  version(): unknown;
  /** True when all that pins reach is known, and nothing more is held for protected. */
  isSettled(): Promise<boolean>;
  /** The store behind its watchers, so that they see the moment of each call. */
  guarded(watched: MetadataStore): MetadataStore;
  /**
   * Its larder is killed: writes that it had not sent are lost, and its heartbeat is so much older.
   */
  die(member: MemberId, silentMs: number): void;
  close(): Promise<void>;
}

/** Opens the database, which outlives the larders, in the folder of their disk or elsewhere. */
export type OpenModelDatabase = (folder: string, nowMs: () => number) => Promise<ModelConnection>;

/** A file: its calls are over before anything else happens. */
export async function openSqliteModel(
  folder: string,
  nowMs: () => number,
): Promise<ModelConnection> {
  const database = await openDatabase(`${folder}/db.sqlite`);
  // A killed process does not lose writes that the system has; the disk itself is not tried.
  database.exec("PRAGMA synchronous = OFF");
  return new SqliteModel(database, nowMs);
}

class SqliteModel implements ModelConnection {
  readonly store: SqliteMetadataStore;
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync, nowMs: () => number) {
    this.#database = database;
    this.store = new SqliteMetadataStore(database, nowMs);
  }

  get isOpen(): boolean {
    return this.#database.isOpen;
  }

  rows(sql: string): readonly Row[] {
    return this.#database.prepare(sql).all();
  }

  version(): unknown {
    return this.#database.prepare("PRAGMA data_version").get()?.["data_version"];
  }

  isSettled(): Promise<boolean> {
    const [row] = this.rows(`SELECT count(*) AS open FROM protected_path, stock
      WHERE expanded = 0 OR protected_path.generation < stock.generation`);
    return Promise.resolve(row?.["open"] === 0);
  }

  guarded(watched: MetadataStore): MetadataStore {
    return watched;
  }

  die(member: MemberId, silentMs: number): void {
    this.#database
      .prepare("UPDATE member SET heartbeat_at_ms = heartbeat_at_ms - ? WHERE id = ?")
      .run(silentMs, member);
    this.#database.close();
  }

  close(): Promise<void> {
    return this.store[Symbol.asyncDispose]();
  }
}
