import { Failure } from "../base/failure.ts";
import { clock } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface Migration {
  /** Greater than 0; each is one more than the last. */
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

export type Dialect = keyof typeof NAMES;

/**
 * All migrations in order, each by the number of the schema that it leads to. The first one makes
 * all tables, in the oldest schema that this larder reads. A change is a new file, never an edit.
 *
 * Larders of the schema before run on while others start: their statements and their calls of
 * functions must work as before. A change that cannot keep that says so in docs/upgrading.md.
 */
const NAMES = {
  sqlite: [
    "0019_initial",
    "0020_forms",
    "0021_pin_names",
    "0022_pulls",
    "0023_pin_looks",
    "0024_former_names",
    "0025_came_at",
  ],
  postgres: [
    "0015_initial",
    "0016_forms",
    "0017_pin_names",
    "0018_pulls",
    "0019_pin_looks",
    "0020_former_names",
    "0021_came_at",
  ],
} as const;

/** Reads the numbered files of `schema/`; the executable embeds them. */
export function readMigrations(dialect: Dialect): readonly Migration[] {
  return NAMES[dialect].map((name) => {
    const sql = Deno.readTextFileSync(new URL(`./schema/${name}.${dialect}.sql`, import.meta.url));
    return { version: parseInt(name), name, sql };
  });
}

/** The schema after all of these migrations. */
export function newestSchema(all: readonly Migration[]): number {
  return all.at(-1)?.version ?? 0;
}

/**
 * The migrations that a database at `version` lacks; 0 is a new one. Throws for a version from the
 * future, and for one that is too old.
 */
export function pendingMigrations(
  all: readonly Migration[],
  version: number,
): readonly Migration[] {
  const [oldest, newest] = [all[0]?.version ?? 0, newestSchema(all)];
  const given = `Cannot use database: it has schema version ${version}, this larder knows versions`;
  if (version > newest) {
    const advice = "start the newer larder, or restore a backup";
    throw new Failure("broken", `${given} up to ${newest}; ${advice}`);
  }
  if (version > 0 && version < oldest) {
    const advice = "start a larder of that time, or give this one another database";
    throw new Failure("broken", `${given} from ${oldest} on; ${advice}`);
  }
  return all.filter((migration) => migration.version > version);
}

/** Throws unless a database at `version`, which has tables of larder alone, has the newest schema. */
export function requireNewest(all: readonly Migration[], version: number): void {
  if (pendingMigrations(all, version).length === 0) return;
  const reason = version === 0 ? "it has no tables of larder" : "it has an older schema";
  throw new Failure("broken", `Cannot use database: ${reason}; start larder first`);
}

/** A member without a heartbeat for so long is dead. */
export const ALIVE_MS = 30_000;

/**
 * Throws where larders run on the schema, unless one migration is pending: their statements are
 * known to work with the next schema.
 */
export async function refuseBeside(
  pending: readonly Migration[],
  version: number,
  running: () => readonly string[] | Promise<readonly string[]>,
): Promise<void> {
  if (version === 0 || pending.length <= 1) return;
  const names = await running();
  if (names.length === 0) return;
  const reason = `it has schema version ${version}, and older larders run on it: ` +
    names.join(", ");
  const hint = "stop them all (systemctl stop larder, docker compose stop, or kubectl scale " +
    "--replicas=0), then start this one; one that was killed counts for 30 s";
  throw new Failure("broken", `Cannot migrate database: ${reason}; ${hint}`);
}

export interface DoneMigration {
  /** Schemas before and after. */
  readonly from: number;
  readonly to: number;
  readonly startedAtMs: number;
  /** The copy of the database before it. */
  readonly backup?: string | undefined;
}

/** Says what an operator needs for the way back. */
export function logMigration(
  log: Pick<Logger, "info"> | undefined,
  { startedAtMs, backup, ...schemas }: DoneMigration,
): void {
  const facts = backup === undefined ? {} : { backup };
  log?.info("database migrated", { ...schemas, ms: clock.nowMs() - startedAtMs, ...facts });
}
