import { ConfigError } from "../config/config_error.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { parseArguments } from "./flags.ts";
import { type ServerArguments, serverSettings, splitServerArguments } from "./server_arguments.ts";
import { EXIT } from "../base/exit_codes.ts";
import { counted, formatBytes } from "../base/format_units.ts";
import { type DatabaseUrl, databaseUrl } from "../config/kinds/database_url.ts";
import { expectationOf, expectedInstead } from "../config/kinds/option.ts";
import { unexpectedArguments } from "../config/sources/flags.ts";
import type { DatabaseMoved, KeyPlace } from "../app/migrate_database.ts";
import type { CopyProgress } from "../metadata/copy_metadata.ts";
import { StatusLine } from "./client/status_line.ts";
import type { StoragePlace } from "../app/folders.ts";
import type { StorageMoved } from "../app/migrate_storage.ts";
import type { NarCopyProgress } from "../cache/migrate/copy_nars.ts";
import { bucketName } from "../config/kinds/plain.ts";
import { reportFailures } from "./client/each.ts";

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

/** Runs work that Ctrl-C ends early, with a status line. `undefined`: it has ended so. */
async function stoppable<Value>(
  process: CommandProcess,
  line: () => string,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value | undefined> {
  const { stopWatch } = await import("../app/lifecycle.ts");
  using stopping = stopWatch();
  try {
    using _status = new StatusLine(process, line);
    return await work(stopping.signal);
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
    process.writeError("larder: stopped; run it again to go on\n");
    return undefined;
  }
}

/** `larder migrate database`. It reads no settings. */
async function migrateDatabaseCommand(
  { own: [from, to, ...more], server }: ServerArguments,
  process: CommandProcess,
): Promise<number> {
  const problems: string[] = [];
  const places = [from, to].map((given) => databaseOf(given, problems));
  problems.push(...unexpectedArguments([...more, ...server]));
  const [source, target] = places;
  if (problems.length > 0 || source === undefined || target === undefined) {
    throw new ConfigError(problems);
  }
  // Loaded here, so that help and errors are fast.
  const { migrateDatabase } = await import("../app/migrate_database.ts");
  let copy: { readonly progress: CopyProgress } | undefined;
  const started = (one: typeof copy) => copy = one;
  const moved = await stoppable(
    process,
    () => rowsLine(copy?.progress),
    (signal) => migrateDatabase({ from: source, to: target, signal, started }),
  );
  if (moved === undefined) return EXIT.failed;
  process.writeOut(reportOfRows(moved));
  return moved.isSame ? EXIT.ok : EXIT.failed;
}

function databaseOf(given: string | undefined, problems: string[]): DatabaseUrl | undefined {
  try {
    return databaseUrl.parse(given ?? "");
  } catch (error) {
    const shown = given === undefined ? "nothing" : JSON.stringify(databaseUrl.redact?.(given));
    problems.push(`migrate: got ${shown}, expected ${expectationOf(error)}`);
    return undefined;
  }
}

function rowsLine(progress: CopyProgress | undefined): string {
  if (progress === undefined) return "opening the databases";
  const { compared, copied, removed } = progress;
  return `${counted(compared, "row")} compared, ${copied} copied${goneWords(removed)}`;
}

function goneWords(removed: number): string {
  return removed === 0 ? "" : `, ${removed} removed`;
}

function reportOfRows({ copied, removed, compared, isSame, key }: DatabaseMoved): string {
  const result = isSame ? "both databases are the same" : "the old one goes on changing";
  const keyLine = key === undefined ? "" : keyLineOf(key);
  return `${counted(copied, "row")} copied${
    goneWords(removed)
  }, ${compared} compared: ${result}.\n${keyLine}`;
}

/** Clients trust the key: a larder that does not find it would make another one. */
function keyLineOf(key: KeyPlace): string {
  if (key === "elsewhere") {
    return "The signing key is not beside the old database. A larder with another storage needs " +
      "--cache-secret-key-path=FILE.\n";
  }
  const option = `--cache-secret-key-path=${key.path}`;
  return `The signing key is in ${key.path}. A larder with another storage needs ${option}.\n`;
}

const BUCKET_REGEXP = /^s3:\/\/(.+?)\/?$/;

/** `larder migrate storage`. */
async function migrateStorageCommand(
  { own: operands, server }: ServerArguments,
  process: CommandProcess,
): Promise<number> {
  const [from, to] = placesOf(operands);
  const args = [...server, ...impliedBy([from, to], server)];
  const { settings } = await serverSettings(args, process);
  // Loaded here, so that help and errors are fast.
  const { migrateStorage } = await import("../app/migrate_storage.ts");
  let copy: { readonly progress: NarCopyProgress } | undefined;
  const started = (one: typeof copy) => copy = one;
  const moved = await stoppable(
    process,
    () => filesLine(copy?.progress),
    (signal) => migrateStorage(settings, { from, to, signal, started }),
  );
  if (moved === undefined) return EXIT.failed;
  const failures = moved.notCopied.map(({ at, reason }) => ({ name: at, reason }));
  const status = reportFailures(failures, "not copied:", process.writeError);
  process.writeOut(reportOfFiles(moved));
  return moved.isSame ? status : EXIT.failed;
}

function placesOf(operands: readonly string[]): readonly [StoragePlace, StoragePlace] {
  const [from, to] = operands;
  if (from === undefined || to === undefined || operands.length > 2) {
    throw new ConfigError(["migrate storage: expected FROM and TO"]);
  }
  const places = [placeOf(from), placeOf(to)] as const;
  if (JSON.stringify(places[0]) !== JSON.stringify(places[1])) return places;
  throw new ConfigError([`migrate storage: got ${JSON.stringify(to)} twice, expected two places`]);
}

function placeOf(given: string): StoragePlace {
  const bucket = BUCKET_REGEXP.exec(given)?.[1];
  if (bucket !== undefined && expectedInstead(bucketName, bucket) === undefined) {
    return { kind: "s3", bucket };
  }
  if (given !== "" && !given.includes("://")) {
    return { kind: "local", folder: given.replace(/(?<=.)\/+$/, "") };
  }
  const got = JSON.stringify(given);
  throw new ConfigError([`migrate storage: got ${got}, expected a folder or s3://BUCKET`]);
}

/** The places as settings, unless others are given. The database is in the folder by default. */
function impliedBy(places: readonly StoragePlace[], server: readonly string[]): readonly string[] {
  const args = places.map((place) =>
    place.kind === "local"
      ? `--cache-storage-local=${place.folder}`
      : `--cache-storage-s3-bucket=${place.bucket}`
  );
  const isGiven = (flag: string) => server.some((arg) => arg.split("=")[0] === flag);
  const flags = new Map(args.toReversed().map((arg) => [arg.split("=")[0] ?? "", arg]));
  return [...flags].filter(([flag]) => !isGiven(flag)).map(([, arg]) => arg);
}

function filesLine(progress: NarCopyProgress | undefined): string {
  if (progress === undefined) return "opening the storages";
  const { compared, copied, copiedBytes } = progress;
  const size = formatBytes(copiedBytes);
  return `${counted(compared, "NAR file")} compared, ${copied} copied (${size})`;
}

function reportOfFiles(
  { copied, copiedBytes, compared, notCopied, isSame, isUsed }: StorageMoved,
): string {
  const left = notCopied.length === 0 ? "both storages are the same" : "the others are the same";
  const result = isSame ? left : "the old one goes on changing";
  const done = `${counted(copied, "NAR file")} copied (${formatBytes(copiedBytes)})`;
  const next = isUsed
    ? "A larder uses the old one: stop it, run this once more, then start it on the new one."
    : "Start larder on the new one.";
  return `${done}, ${compared} compared: ${result}.\n${isSame ? `${next}\n` : ""}`;
}
