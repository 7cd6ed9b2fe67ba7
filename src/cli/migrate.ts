import { ConfigError } from "../config/config_error.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { parseArguments } from "./flags.ts";
import { migrateDatabaseCommand } from "./migrate_database.ts";
import { migrateStorageCommand } from "./migrate_storage.ts";
import { type ServerArguments, splitServerArguments } from "./server_arguments.ts";

export const MIGRATE: Command = {
  name: "migrate",
  summary: "Copy the database or the NAR files to another place",
  operands: "database|storage FROM TO",
  about: `A server may use FROM meanwhile. Run it again to copy the changes. Then restart the server
with TO. It ends with status 1 while FROM changes.

  database FROM TO  FROM and TO are values of --cache-database-url. NAR files stay where they are.
                    It removes rows from TO that FROM no longer has. So TO must be empty, or a
                    copy that no larder has used since; else it changes nothing. The signing key
                    of PostgreSQL goes to "secret-key" beside the SQLite file.
  storage FROM TO   FROM and TO are a folder, as in --cache-storage-local, or s3://BUCKET. The
                    database, the endpoint and the keys of the bucket are those of the settings.
                    It compares every NAR file with the hash in the database. It lists and
                    skips broken files, with exit status 1. Run it once more with the server
                    stopped.
`,
  examples: [
    [
      "larder migrate database sqlite:/var/lib/larder/db.sqlite postgres://larder@db/larder",
      "Move from SQLite to PostgreSQL",
    ],
    [
      "larder migrate storage /var/lib/larder s3://nix-cache --config /etc/larder/config.toml",
      "Move the NAR files into a bucket",
    ],
  ],
  ownFlags: {},
  flags: "server",
  run: migrateCommand,
};

/** Gets the operands behind its name as `own`. */
type MigrationCommand = (args: ServerArguments, host: CommandProcess) => Promise<number>;

const KINDS: Readonly<Record<string, MigrationCommand>> = {
  "database": migrateDatabaseCommand,
  "storage": migrateStorageCommand,
};

async function migrateCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { own, server } = splitServerArguments({}, args);
  const { rest: [kind = "", ...operands] } = parseArguments({}, { ...process, args: own });
  const run = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (run === undefined) throw new ConfigError(["migrate: expected database or storage, FROM TO"]);
  return await run({ own: operands, server }, process);
}
