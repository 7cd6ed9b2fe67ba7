import { DatabaseSync, type SQLOutputValue } from "node:sqlite";
import { copyDatabase } from "../../../base/database_copy.ts";
import { Failure, reasonOf } from "../../../base/failure.ts";
import { fileBytes } from "../../../base/files.ts";

/** How long a read waits while ncps writes. */
const BUSY_TIMEOUT_MS = 5_000;

export type Row = Readonly<Record<string, SQLOutputValue>>;

/** Pinned closures first, then the most recently used paths. */
const IDS = `
  WITH RECURSIVE pinned (hash) AS (
    SELECT hash FROM pinned_closures
    UNION
    SELECT substr(reference, 1, 32) FROM pinned
    JOIN narinfos ON narinfos.hash = pinned.hash
    JOIN narinfo_references ON narinfo_id = narinfos.id
  )
  SELECT id FROM narinfos LEFT JOIN pinned USING (hash)
  ORDER BY pinned.hash IS NULL, coalesce(last_accessed_at, created_at) DESC, id
`;

/** A database, and the copy that it is of. */
interface OpenedDatabase {
  readonly database: DatabaseSync;
  readonly copy?: Disposable;
}

/** The database of an ncps, which may be running. Nothing writes to it. */
export class NcpsDatabase implements Disposable {
  readonly #database: DatabaseSync;
  readonly #copy: Disposable | undefined;

  private constructor({ database, copy }: OpenedDatabase) {
    this.#database = database;
    this.#copy = copy;
  }

  /** Throws a Failure for anything but the database of an ncps. */
  static open(path: string): NcpsDatabase {
    let opened: NcpsDatabase | undefined;
    try {
      Deno.statSync(path);
      opened = new NcpsDatabase(openForReading(path));
      if (opened.#hasTable("narinfos") && opened.#hasTable("nar_files")) return opened;
      throw new Error("it has no tables of ncps");
    } catch (error) {
      opened?.[Symbol.dispose]();
      const message = `Cannot read the database of ncps ${path}: ${reasonOf(error)}`;
      throw new Failure("broken", `${message}; name it with --database sqlite:PATH`, {}, error);
    }
  }

  /** The ids of all narinfos: those of pinned closures, then the others, the hottest first. */
  ids(): readonly number[] {
    const sql = this.#hasTable("pinned_closures")
      ? IDS
      : "SELECT id FROM narinfos ORDER BY coalesce(last_accessed_at, created_at) DESC, id";
    return this.#all(sql).map(({ id }) => Number(id));
  }

  narinfo(id: number): Row | undefined {
    return this.#all("SELECT * FROM narinfos WHERE id = ?", id)[0];
  }

  references(id: number): readonly string[] {
    const sql = "SELECT reference FROM narinfo_references WHERE narinfo_id = ? ORDER BY reference";
    return this.#all(sql, id).map(({ reference }) => String(reference));
  }

  signatures(id: number): readonly string[] {
    const sql = "SELECT signature FROM narinfo_signatures WHERE narinfo_id = ? ORDER BY id";
    return this.#all(sql, id).map(({ signature }) => String(signature));
  }

  narFiles(id: number): readonly Row[] {
    return this.#all(
      `SELECT nar_files.* FROM narinfo_nar_files JOIN nar_files ON nar_files.id = nar_file_id
       WHERE narinfo_id = ? ORDER BY nar_files.id DESC`,
      id,
    );
  }

  /** The chunks of a NAR file, in its order. */
  chunks(narFileId: number): readonly Row[] {
    return this.#all(
      `SELECT hash, size FROM nar_file_chunks JOIN chunks ON chunks.id = chunk_id
       WHERE nar_file_id = ? ORDER BY chunk_index`,
      narFileId,
    );
  }

  pins(): readonly Row[] {
    if (!this.#hasTable("pinned_closures")) return [];
    return this.#all("SELECT hash, created_at FROM pinned_closures ORDER BY id");
  }

  /** The secret key that ncps made; `undefined` where it was given one in a file. */
  secretKey(): string | undefined {
    if (!this.#hasTable("config")) return undefined;
    const [row] = this.#all("SELECT value FROM config WHERE key = 'secret_key'");
    return row && String(row["value"]);
  }

  [Symbol.dispose](): void {
    this.#database.close();
    this.#copy?.[Symbol.dispose]();
  }

  #hasTable(name: string): boolean {
    const sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?";
    return this.#all(sql, name).length > 0;
  }

  #all(sql: string, ...values: readonly (string | number)[]): readonly Row[] {
    return this.#database.prepare(sql).all(...values);
  }
}

function openForReading(path: string): OpenedDatabase {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    database.prepare("SELECT 1 FROM sqlite_master").all();
    return { database };
  } catch (error) {
    database.close();
    // SQLite reads a write-ahead log only where it may write beside it. A stopped ncps has none.
    if (fileBytes(`${path}-wal`)) throw error;
    const copy = copyDatabase(path);
    return { database: new DatabaseSync(copy.path, { readOnly: true }), copy };
  }
}
