import type { Client } from "./pg.d.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import {
  ALIVE_MS,
  logMigration,
  type Migration,
  newestSchema,
  pendingMigrations,
  refuseBeside,
  requireNewest,
} from "../migrations.ts";

/** The lock of migrations: a number that no other program takes in this database. */
const LOCK = 1_818_321_508;

/** Tests run on this release and newer ones. */
const SERVER_VERSION_MIN = 15;

/** The tables that each version of ncps has. */
const NCPS_TABLES = ["narinfos", "nar_files", "schema_migrations"];

/** The longest migration: one of a large database rewrites tables. */
const MIGRATION_MAX_MS = 3_600_000;

/**
 * Migrates the database to the newest schema, in one transaction. Replicas that start together wait
 * for the first one. Throws a Failure for a database of a newer larder.
 */
export async function migrate(
  client: Client,
  all: readonly Migration[],
  log: Pick<Logger, "info">,
): Promise<void> {
  await refuseOldServer(client);
  const run = (text: string) => client.query({ text, query_timeout: MIGRATION_MAX_MS });
  await run("BEGIN");
  try {
    await run(`SELECT pg_advisory_xact_lock(${LOCK})`);
    // The wait for another larder's migration is not a part of this one.
    const startedAtMs = clock.nowMs();
    const version = await versionOf(client);
    if (version === 0) await refuseForeign(client);
    await run("CREATE TABLE IF NOT EXISTS schema_version (version int NOT NULL)");
    const pending = pendingMigrations(all, version);
    await refuseBeside(pending, version, () => running(client));
    for (const { name, sql } of pending) await apply(name, () => run(sql));
    if (pending.length > 0) {
      await run("DELETE FROM schema_version");
      await run(`INSERT INTO schema_version VALUES (${newestSchema(all)})`);
    }
    await run("COMMIT");
    if (version > 0 && pending.length > 0) {
      logMigration(log, { from: version, to: newestSchema(all), startedAtMs });
    }
  } catch (error) {
    await run("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

/** Throws a Failure where the database has another schema than the newest. */
export async function requireSchema(client: Client, all: readonly Migration[]): Promise<void> {
  await refuseOldServer(client);
  const version = await versionOf(client);
  if (version === 0) await refuseForeign(client);
  requireNewest(all, version);
}

/** 0 for a database without larder's tables. */
async function versionOf(client: Client): Promise<number> {
  const { rows: [found] } = await client.query("SELECT to_regclass('schema_version') AS name");
  if (found?.["name"] === null) return 0;
  const { rows: [row] } = await client.query("SELECT version FROM schema_version");
  return Number(row?.["version"] ?? 0);
}

/** Throws for a database of another program, such as ncps: larder would write among its tables. */
async function refuseForeign(client: Client): Promise<void> {
  const { rows } = await client.query(
    "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1",
  );
  const tables = rows.map((row) => String(row["tablename"]));
  if (tables.length === 0) return;
  const isNcps = NCPS_TABLES.every((name) => tables.includes(name));
  const reason = isNcps
    ? "it is that of an ncps"
    : `it has the table ${tables[0]} of another program`;
  const hint = "give larder one of its own with --cache-database-url";
  throw new Failure("broken", `Cannot use database: ${reason}; ${hint}`);
}

/** The members that live. */
async function running(client: Client): Promise<readonly string[]> {
  const { rows } = await client.query(
    `SELECT coalesce(url, id) AS name FROM member
      WHERE heartbeat_at_ms > extract(epoch FROM clock_timestamp()) * 1000 - ${ALIVE_MS}
      ORDER BY 1`,
  );
  return rows.map((row) => String(row["name"]));
}

async function apply(name: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const reason = messageOf(error);
    throw new Failure("broken", `Cannot apply migration ${name}: ${reason}`, {}, error);
  }
}

async function refuseOldServer(client: Client): Promise<void> {
  const { rows } = await client.query("SHOW server_version_num");
  const version = Math.floor(Number(rows[0]?.["server_version_num"]) / 10_000);
  if (version >= SERVER_VERSION_MIN) return;
  throw new Failure(
    "broken",
    `Cannot use PostgreSQL ${version}: larder needs ${SERVER_VERSION_MIN} or newer`,
  );
}
