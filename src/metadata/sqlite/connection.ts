import { backup, DatabaseSync } from "node:sqlite";
import { Failure, messageOf } from "../../base/failure.ts";
import { type Migration, pendingMigrations, readMigrations } from "../migrations.ts";

/** How long opening and migrating wait for another process that writes. */
const OPENING_TIMEOUT_MS = 5_000;

/** The same once it is open: the thread stands still for it, so it is short and tried again. */
const BUSY_TIMEOUT_MS = 10;

/** Pages kept in memory, in KiB; negative is SQLite's way to say "not a count of pages". */
const PAGE_CACHE_KIB = -16_384;

/** 128 MiB: more than what the Worker waits for ever is. */
const AUTOCHECKPOINT_PAGES = 32_000;

/** A log that is shorter keeps its place on disk: to cut it off takes milliseconds. */
const WAL_KEPT_BYTES = 64 << 20;

/**
 * Opens the database file, making it if needed, and brings it to the newest schema. `:memory:`
 * serves tests. Throws a Failure that names the file when it is no database, cannot be opened,
 * or comes from a newer larder.
 */
export async function openDatabase(
  path: string,
  migrations: readonly Migration[] = readMigrations("sqlite"),
): Promise<DatabaseSync> {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, {
      timeout: OPENING_TIMEOUT_MS,
      // Every row is written in one transaction with those it refers to; checking that again
      // costs a tenth of each write.
      enableForeignKeyConstraints: false,
    });
    // WAL with NORMAL: a killed process loses nothing; a power cut may lose the last moments,
    // never the consistency. A NAR file without its row is found again by reconciliation.
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = NORMAL");
    // Only where the Worker does not get to it: a checkpoint here stops the requests.
    database.exec(`PRAGMA wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES}`);
    database.exec(`PRAGMA journal_size_limit = ${WAL_KEPT_BYTES}`);
    database.exec(`PRAGMA cache_size = ${PAGE_CACHE_KIB}`);
    await migrate(database, path, migrations);
    // Not before: a migration of a large database sorts hundreds of megabytes.
    database.exec("PRAGMA temp_store = MEMORY");
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    return database;
  } catch (error) {
    database?.close();
    const reason = messageOf(error);
    throw new Failure("broken", `Cannot open database ${path}: ${reason}`, { path }, error);
  }
}

/** The same file for somebody who only looks; it must be there, and of today's schema. */
export function openForReading(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: true, timeout: OPENING_TIMEOUT_MS });
  database.exec("PRAGMA temp_store = MEMORY");
  return database;
}

async function migrate(
  database: DatabaseSync,
  path: string,
  all: readonly Migration[],
): Promise<void> {
  const version = versionOf(database);
  const pending = pendingMigrations(all, version);
  if (version > 0 && pending.some((migration) => migration.rewrites)) {
    await backup(database, backupPath(path, version));
  }
  for (const migration of pending) {
    database.exec("BEGIN IMMEDIATE");
    try {
      // Another process that started with us may have done it meanwhile.
      if (versionOf(database) >= migration.version) {
        database.exec("ROLLBACK");
        continue;
      }
      database.exec(migration.sql);
      database.exec(`PRAGMA user_version = ${migration.version}`);
      database.exec("COMMIT");
    } catch (error) {
      database.exec("ROLLBACK");
      const reason = messageOf(error);
      throw new Failure("broken", `Cannot apply migration ${migration.name}: ${reason}`, {}, error);
    }
  }
}

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
}

/** Where the copy of a database at `version` goes; an older copy of that version is kept. */
function backupPath(path: string, version: number): string {
  const base = `${path}.schema-${version}.backup`;
  for (let attempt = 0;; attempt++) {
    const candidate = attempt === 0 ? base : `${base}-${attempt}`;
    try {
      Deno.lstatSync(candidate);
    } catch {
      return candidate;
    }
  }
}
