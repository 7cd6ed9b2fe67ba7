import { backup, DatabaseSync } from "node:sqlite";
import { Failure, messageOf } from "../../base/failure.ts";
import { removeIfPresent } from "../../base/files.ts";
import { clock, dice } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import {
  ALIVE_MS,
  logMigration,
  type Migration,
  newestSchema,
  pendingMigrations,
  readMigrations,
  refuseBeside,
  requireNewest,
} from "../migrations.ts";

/** How long opening and migrating wait for another process that writes. */
const OPENING_TIMEOUT_MS = 5_000;

/** The lock timeout after opening: it stops the thread, so it is short, and retried. */
const BUSY_TIMEOUT_MS = 10;

/** Pages in memory, in KiB; SQLite marks KiB by a negative number. */
const PAGE_CACHE_KIB = -16_384;

/** The rows name everything that was pulled: a read token closes them to other users, too. */
const OWNER_ALONE = 0o600;

/** 128 MiB: more than the Worker ever leaves behind. */
const AUTOCHECKPOINT_PAGES = 32_000;

/** A shorter log keeps its place on disk: to cut it off takes milliseconds. */
const WAL_KEPT_BYTES = 64 << 20;

/**
 * Opens or creates the database file, and migrates it to the newest schema. `:memory:` is for
 * tests. Throws a Failure that names the file when it cannot be opened, is no database, belongs to
 * another program, or comes from a newer larder.
 */
export async function openDatabase(
  path: string,
  migrations: readonly Migration[] = readMigrations("sqlite"),
  log?: Pick<Logger, "info">,
): Promise<DatabaseSync> {
  let database: DatabaseSync | undefined;
  try {
    if (path !== ":memory:") createForOwner(path);
    database = new DatabaseSync(path, {
      timeout: OPENING_TIMEOUT_MS,
      // One transaction writes a row with the rows that it refers to; another check would cost a
      // tenth of each write.
      enableForeignKeyConstraints: false,
    });
    refuseForeign(database);
    if (path !== ":memory:") { for (const end of ["", "-wal", "-shm"]) closeToOthers(path + end); }
    // WAL with NORMAL: a killed process loses nothing. A power cut may lose the last moments, never
    // the consistency. Reconciliation finds NAR files without rows.
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = NORMAL");
    // Only a fallback for the Worker: a checkpoint on this thread stops requests.
    database.exec(`PRAGMA wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES}`);
    database.exec(`PRAGMA journal_size_limit = ${WAL_KEPT_BYTES}`);
    database.exec(`PRAGMA cache_size = ${PAGE_CACHE_KIB}`);
    await migrate(database, path, migrations, log);
    // Only after the migrations: one of a large database sorts hundreds of megabytes.
    database.exec("PRAGMA temp_store = MEMORY");
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    return database;
  } catch (error) {
    database?.close();
    const reason = messageOf(error);
    throw new Failure("broken", `Cannot open database ${path}: ${reason}`, { path }, error);
  }
}

/**
 * Makes a missing file that its owner alone may open, whatever the umask. SQLite gives its log the
 * rights of the database. Any other problem is SQLite's to report.
 */
function createForOwner(path: string): void {
  try {
    Deno.openSync(path, { write: true, createNew: true, mode: OWNER_ALONE }).close();
    Deno.chmodSync(path, OWNER_ALONE);
  } catch {
    // It is there, as nearly always, or cannot be made.
  }
}

/** Takes the rights of others. Who does not own the file cannot: `larder doctor` names it. */
function closeToOthers(path: string): void {
  try {
    const { mode } = Deno.statSync(path);
    if (mode !== null && (mode & 0o077) !== 0) Deno.chmodSync(path, mode & 0o700);
  } catch {
    // Without a log there is nothing to close.
  }
}

/** Opens the file for reading; it must exist, and have the newest schema. */
export function openForReading(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: true, timeout: OPENING_TIMEOUT_MS });
  database.exec("PRAGMA temp_store = MEMORY");
  return database;
}

/** The same for a command of its own. Throws a Failure for another schema than the newest. */
export function openToCopy(path: string): DatabaseSync {
  const database = openForReading(path);
  try {
    refuseForeign(database);
    requireNewest(readMigrations("sqlite"), schemaVersionOf(database));
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Changes nothing: ncps, whose settings larder reads, may go on with its database. */
function refuseForeign(database: DatabaseSync): void {
  if (!isForeign(database)) return;
  const hint = "give larder one of its own with --cache-database-url";
  throw new Failure("broken", `it is a database of another program; ${hint}`);
}

/** True for a database that larder has not made. */
export function isForeign(database: DatabaseSync): boolean {
  // One statement: between two of them another larder may make the first tables.
  const tables = "SELECT 1 FROM sqlite_schema, pragma_user_version WHERE user_version = 0 LIMIT 1";
  return database.prepare(tables).get() !== undefined;
}

async function migrate(
  database: DatabaseSync,
  path: string,
  all: readonly Migration[],
  log?: Pick<Logger, "info">,
): Promise<void> {
  const startedAtMs = clock.nowMs();
  const version = schemaVersionOf(database);
  const pending = pendingMigrations(all, version);
  // A larder of this version may have migrated meanwhile, and runs.
  const older = () => schemaVersionOf(database) === version ? running(database) : [];
  await refuseBeside(pending, version, older);
  const isUpgrade = version > 0 && pending.length > 0;
  const backup = isUpgrade ? await keepBackup(database, path, version) : undefined;
  for (const migration of pending) {
    database.exec("BEGIN IMMEDIATE");
    try {
      // Another process that started at the same time may have migrated meanwhile.
      if (schemaVersionOf(database) >= migration.version) {
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
  if (isUpgrade) logMigration(log, { from: version, to: newestSchema(all), startedAtMs, backup });
}

/** The members that live: all are on this machine, and so on its clock. */
function running(database: DatabaseSync): readonly string[] {
  const rows = database.prepare(
    "SELECT ifnull(url, id) AS name FROM member WHERE heartbeat_at_ms > ? ORDER BY 1",
  ).all(clock.wallMs() - ALIVE_MS);
  return rows.map((row) => String(row["name"]));
}

/** The number of the last migration; 0 for a new file. */
export function schemaVersionOf(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
}

/**
 * Copies the database to `<path>.schema-<version>.backup`, for the way back. The latest copy of
 * each version stays. Resolves with its name.
 */
async function keepBackup(database: DatabaseSync, path: string, version: number): Promise<string> {
  const kept = `${path}.schema-${version}.backup`;
  // A crash leaves no half copy under the name.
  const growing = `${kept}.${dice.uuid()}`;
  try {
    createForOwner(growing);
    await backup(database, growing);
    Deno.renameSync(growing, kept);
    return kept;
  } catch (error) {
    removeIfPresent(growing);
    const reason = messageOf(error);
    const hint = "make room for a copy of the database";
    throw new Failure("broken", `Cannot back up to ${kept}: ${reason}; ${hint}`, {}, error);
  }
}
