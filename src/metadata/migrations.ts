import { Failure } from "../base/failure.ts";

export interface Migration {
  /** 1 for the first; each is one more than the one before it. */
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  /** True when it rewrites what is there: the database is copied first. */
  readonly rewrites: boolean;
}

export type Dialect = "sqlite";

/** All migrations in order. A released one is never edited; a change is a further file. */
const NAMES = [
  "0001_initial",
  "0002_pins",
  "0003_space",
  "0004_documents",
  "0005_kept_uses",
  "0006_stored_names",
  "0007_retention",
] as const;

/** First line of a migration that rewrites what is there. */
const REWRITES_MARK = "-- rewrites";

/** Reads the numbered files of `schema/`; in the executable they are embedded. */
export function readMigrations(dialect: Dialect): readonly Migration[] {
  return NAMES.map((name, index) => {
    const sql = Deno.readTextFileSync(new URL(`./schema/${name}.${dialect}.sql`, import.meta.url));
    return { version: index + 1, name, sql, rewrites: sql.startsWith(REWRITES_MARK) };
  });
}

/** What has still to be applied to a database at `version`. A version from the future throws. */
export function pendingMigrations(
  all: readonly Migration[],
  version: number,
): readonly Migration[] {
  if (version > all.length) {
    throw new Failure(
      "broken",
      `Cannot use database: it has schema version ${version}, this larder knows versions up to ` +
        `${all.length}; start the newer larder, or restore a backup`,
    );
  }
  return all.slice(version);
}
