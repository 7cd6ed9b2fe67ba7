import { DatabaseSync, type SQLOutputValue } from "node:sqlite";
import { copyDatabaseInto } from "../../../base/database_copy.ts";
import { fileBytes } from "../../../base/files.ts";
import { formatBytes } from "../../../base/format_units.ts";
import { NARINFO_REFERENCES_MAX, NARINFO_SIGNATURES_MAX } from "../../../nix/narinfo_parse.ts";
import type { NcpsContents, NcpsEntryRows, Row } from "./ncps_tables.ts";

/** How long a read waits while ncps writes. */
const BUSY_TIMEOUT_MS = 5_000;

/** The longest value of a row. */
const VALUE_BYTES_MAX = 64 * 1024;

/** The most bytes of one result. Small files can hold more: rows may share their pages. */
const RESULT_BYTES_MAX = 128 * 1024 * 1024;

/** The most rows of each kind. */
const IDS_MAX = 2_000_000;
const PINS_MAX = 100_000;
const CHUNKS_MAX = 1_000_000;

/** The tables, with those of their columns that are read. Older releases lack some of both. */
const TABLES = {
  narinfos: [
    ...["id", "hash", "store_path", "compression", "file_hash", "file_size", "nar_hash"],
    ...["nar_size", "deriver", "system", "ca", "last_accessed_at", "created_at"],
  ],
  narinfo_references: ["narinfo_id", "reference"],
  narinfo_signatures: ["id", "narinfo_id", "signature"],
  narinfo_nar_files: ["narinfo_id", "nar_file_id"],
  nar_files: ["id", "hash", "compression", "total_chunks", "last_accessed_at"],
  nar_file_chunks: ["nar_file_id", "chunk_id", "chunk_index"],
  chunks: ["id", "hash", "size"],
  pinned_closures: ["id", "hash", "created_at"],
  config: ["key", "value"],
} as const;

type Table = keyof typeof TABLES;

const NEEDED: readonly Table[] = ["narinfos", "nar_files"];

/** Pinned closures first, then the most recently used paths. */
const PINNED = `
  WITH RECURSIVE pinned (hash) AS (
    SELECT ${short("hash")} FROM pinned_closures
    UNION
    SELECT substr(${short("reference")}, 1, 32) FROM pinned
    JOIN narinfos ON narinfos.hash = pinned.hash
    JOIN narinfo_references ON narinfo_id = narinfos.id
  )
  SELECT id FROM narinfos LEFT JOIN pinned USING (hash)
  ORDER BY pinned.hash IS NULL,
`;
const HOTTEST = `${short("coalesce(last_accessed_at, created_at)")} DESC, id LIMIT ${IDS_MAX + 1}`;

/** The database of an ncps, which may be running. Nothing writes to it. */
export class NcpsDatabase implements Disposable {
  readonly #database: DatabaseSync;
  readonly #columns: ReadonlyMap<Table, readonly string[]>;

  /** `copyFolder` takes a copy, if need be. Throws for anything but the database of an ncps. */
  constructor(path: string, copyFolder: string) {
    this.#database = openForReading(path, copyFolder);
    try {
      this.#database.exec(`
        PRAGMA trusted_schema = OFF;
        PRAGMA query_only = ON;
        PRAGMA cell_size_check = ON;
        PRAGMA mmap_size = 0;
        PRAGMA cache_size = -16384;
      `);
      this.#columns = this.#plainTables();
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  contents(): NcpsContents {
    const hasPins = this.#columns.has("pinned_closures");
    // SQLite may build an index of them.
    const tooLong = "SELECT 1 FROM narinfos WHERE octet_length(hash) > 512 LIMIT 1";
    if (this.#all(tooLong).length > 0) throw new Error("it has a hash that is too long");
    const sql = hasPins ? PINNED + HOTTEST : `SELECT id FROM narinfos ORDER BY ${HOTTEST}`;
    const ids = this.#all(sql).map(({ id }) => BigInt(id as bigint));
    checkCount(ids, "narinfos", IDS_MAX);
    return {
      ids,
      pins: hasPins ? this.#rows("pinned_closures", PINS_MAX, "ORDER BY id") : [],
      secretKey: this.#secretKey(),
    };
  }

  entry(id: bigint): NcpsEntryRows | undefined {
    const [narinfo] = this.#rows("narinfos", 1, "WHERE id = ?", id);
    if (narinfo === undefined) return undefined;
    const own = "WHERE narinfo_id = ? ORDER BY";
    const references = this.#rows(
      ...["narinfo_references", NARINFO_REFERENCES_MAX, `${own} reference`, id] as const,
    );
    const signatures = this.#rows(
      ...["narinfo_signatures", NARINFO_SIGNATURES_MAX, `${own} id`, id] as const,
    );
    const [file] = this.#all(
      `SELECT ${this.#values("nar_files")} FROM narinfo_nar_files
       JOIN nar_files ON nar_files.id = nar_file_id
       WHERE narinfo_id = ? ORDER BY nar_files.id DESC LIMIT 1`,
      id,
    );
    return {
      narinfo: checked(narinfo),
      references: references.map(({ reference }) => String(reference)),
      signatures: signatures.map(({ signature }) => String(signature)),
      file: file && checked(file),
      chunks: Number(file?.["total_chunks"] ?? 0) > 0 ? this.#chunks(file?.["id"] as bigint) : [],
    };
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  #chunks(narFileId: bigint): readonly Row[] {
    const rows = this.#all(
      `SELECT ${this.#values("chunks")} FROM nar_file_chunks JOIN chunks ON chunks.id = chunk_id
       WHERE nar_file_id = ? ORDER BY chunk_index LIMIT ${CHUNKS_MAX + 1}`,
      narFileId,
    );
    return checkCount(rows, "chunks", CHUNKS_MAX).map(checked);
  }

  #secretKey(): string | undefined {
    if (!this.#columns.has("config")) return undefined;
    const [row] = this.#rows("config", 1, "WHERE key = 'secret_key'");
    return row && String(row["value"]);
  }

  /** Reads tables alone: a view, a virtual table or a generated column may compute for ever. */
  #plainTables(): ReadonlyMap<Table, readonly string[]> {
    const columns = new Map<Table, readonly string[]>();
    for (const table of Object.keys(TABLES) as Table[]) {
      const sql = "SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = ?";
      const [found] = this.#all(sql, table);
      if (found === undefined) {
        if (NEEDED.includes(table)) throw new Error("it has no tables of ncps");
        continue;
      }
      if (found["type"] !== "table") throw new Error(`its ${table} is no table`);
      const there = this.#all("SELECT name, hidden FROM pragma_table_xinfo(?)", table);
      if (there.some(({ hidden }) => Number(hidden) !== 0)) {
        throw new Error(`its ${table} has a computed column`);
      }
      const names = new Set(there.map(({ name }) => name));
      columns.set(table, TABLES[table].filter((name) => names.has(name)));
    }
    return columns;
  }

  /** At most `countMax` rows. Throws for more, and for a value that is too long. */
  #rows(
    table: Table,
    countMax: number,
    clauses: string,
    ...values: readonly bigint[]
  ): readonly Row[] {
    const sql = `SELECT ${this.#values(table)} FROM ${table} ${clauses} LIMIT ${countMax + 1}`;
    const rows = this.#all(sql, ...values);
    return checkCount(rows, table, countMax).map(checked);
  }

  /** A value that is too long comes as an empty blob. SQLite does not read the rest of it. */
  #values(table: Table): string {
    const columns = this.#columns.get(table) ?? [];
    return columns.map((name) => {
      const column = `${table}.${name}`;
      const isLong = `octet_length(${column}) > ${VALUE_BYTES_MAX}`;
      return `iif(${isLong}, zeroblob(0), ${column}) AS ${name}`;
    }).join(", ");
  }

  #all(sql: string, ...values: readonly (string | bigint)[]): readonly Row[] {
    const statement = this.#database.prepare(sql);
    // Others could not read an id of 2^53 and more.
    statement.setReadBigInts(true);
    const rows: Row[] = [];
    let bytes = 0;
    for (const row of statement.iterate(...values)) {
      for (const value of Object.values(row)) bytes += bytesOf(value);
      if (bytes > RESULT_BYTES_MAX) {
        throw new Error(`it has rows of more than ${formatBytes(RESULT_BYTES_MAX)}`);
      }
      rows.push(row);
    }
    return rows;
  }
}

/** At least: of a text with characters beyond ASCII. */
function bytesOf(value: SQLOutputValue): number {
  return typeof value === "string" ? value.length : 8;
}

/** NULL in place of a text that is no hash, date or store path. */
function short(value: string): string {
  return `iif(octet_length(${value}) <= 512, ${value}, NULL)`;
}

function checkCount<Value>(
  rows: readonly Value[],
  table: string,
  countMax: number,
): readonly Value[] {
  if (rows.length <= countMax) return rows;
  throw new Error(`it has more than ${countMax.toLocaleString("en-US")} rows in ${table}`);
}

/** ncps writes no blobs. */
function checked(row: Row): Row {
  for (const [name, value] of Object.entries(row)) {
    if (!(value instanceof Uint8Array)) continue;
    throw new Error(`its ${name} is a blob, or longer than ${VALUE_BYTES_MAX / 1024} KiB`);
  }
  return row;
}

function openForReading(path: string, copyFolder: string): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    database.prepare("SELECT 1 FROM sqlite_master LIMIT 1").all();
    return database;
  } catch (error) {
    database.close();
    // SQLite reads a write-ahead log only where it may write beside it. A stopped ncps has none.
    if (fileBytes(`${path}-wal`)) throw error;
    return new DatabaseSync(copyDatabaseInto(copyFolder, path), { readOnly: true });
  }
}
