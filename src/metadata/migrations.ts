import { Failure } from "../base/failure.ts";

export interface Migration {
  /** 1 for the first; each is one more than the last. */
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

export type Dialect = keyof typeof NAMES;

/** All migrations in order. A released one is never edited; a change is a new file. */
const NAMES = {
  sqlite: [
    "0001_initial",
    "0002_pins",
    "0003_space",
    "0004_documents",
    "0005_kept_uses",
    "0006_stored_names",
    "0007_retention",
    "0008_staged_nars",
    "0009_members",
    "0010_history",
    "0011_revision",
    "0012_storage_id",
    "0013_path_times",
    "0014_member_reports",
    "0015_copies",
    "0016_signed_paths",
    "0017_member_urls",
    "0018_reference_rest",
    "0019_seen",
  ],
  postgres: [
    "0001_tables",
    "0002_protection",
    "0003_changes",
    "0004_space",
    "0005_history",
    "0006_members",
    "0007_signing_key",
    "0008_storage_id",
    "0009_path_times",
    "0010_member_reports",
    "0011_unless_kept",
    "0012_copies",
    "0013_signed_paths",
    "0014_member_urls",
    "0015_seen",
  ],
} as const;

/** Reads the numbered files of `schema/`; the executable embeds them. */
export function readMigrations(dialect: Dialect): readonly Migration[] {
  return NAMES[dialect].map((name, index) => {
    const sql = Deno.readTextFileSync(new URL(`./schema/${name}.${dialect}.sql`, import.meta.url));
    return { version: index + 1, name, sql };
  });
}

/** The migrations that a database at `version` lacks. Throws for a version from the future. */
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
