import { dirname } from "node:path";
import type { OptionTable } from "../config/kinds/option.ts";
import { path } from "../config/kinds/plain.ts";
import { OPTIONS, type Settings } from "../config/options.ts";
import type { DatabasePlace } from "./back_ends/metadata_back_end.ts";
import { storageFolder, storePlaces } from "./folders.ts";
import { CERTIFICATE_BUNDLES, CERTIFICATE_VARIABLES } from "./system_certificates.ts";
import { NETWORK_FILES } from "./reachable_url.ts";
import { GROUPS_FILE } from "./unix_socket.ts";

/** The files that a server needs, and nothing else. */
export interface NeededFiles {
  readonly read: readonly string[];
  readonly write: readonly string[];
}

/** The grant that a server starts with: the task and the executable name it. */
const ROOT = "/";

/** larder's own sources: migrations, the page, and the code of Workers. */
const SOURCES = new URL("../..", import.meta.url);

/** The process's own file handles, for a metric. */
const OPEN_FILES = "/proc/self/fd";

/** Variables and files, below the home folder, from which the S3 SDK takes missing keys. */
const S3_VARIABLES = [
  "AWS_SHARED_CREDENTIALS_FILE",
  "AWS_CONFIG_FILE",
  "AWS_WEB_IDENTITY_TOKEN_FILE",
  "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
];
const S3_FOLDER = ".aws";

/** Parameters of a URL of PostgreSQL that name files. */
const POSTGRES_FILES = ["sslrootcert", "sslcert", "sslkey"];

/** Files that a server with these settings reads and writes. */
export function neededFiles(
  settings: Settings,
  variable: (name: string) => string | undefined,
): NeededFiles {
  const { database, nars } = storePlaces(settings);
  const address = settings["server.addr"];
  const sockets = [address.kind === "unix" ? address.path : undefined, variable("NOTIFY_SOCKET")];
  const secretKey = settings["cache.secret-key-path"];
  const write = present([
    storageFolder(settings),
    ...databaseFolders(database),
    settings["cache.temp-path"],
    // A new key is written beside its place, then linked.
    secretKey && ownFolder(secretKey),
    ...sockets,
  ]);
  const home = variable("HOME");
  const ofS3 = nars.kind === "s3" && nars.s3.credentials === undefined
    ? [...S3_VARIABLES.map(variable), home && `${home}/${S3_FOLDER}`]
    : [];
  const ofPostgres = database.kind === "postgres"
    ? [variable("PGPASSFILE"), home && `${home}/.pgpass`, ...POSTGRES_FILES.map(parameterOf)]
    : [];
  const read = [
    SOURCES.pathname,
    ...write,
    ...filesOf(settings),
    ...present([...CERTIFICATE_VARIABLES.map(variable), ...ofS3, ...ofPostgres]),
    ...CERTIFICATE_BUNDLES,
    ...NETWORK_FILES,
    GROUPS_FILE,
    OPEN_FILES,
  ];
  return { read, write };

  function parameterOf(name: string): string | undefined {
    const url = database.kind === "postgres" ? new URL(database.url) : undefined;
    return url?.searchParams.get(name) ?? undefined;
  }
}

/**
 * Gives up the files that are not needed, for good. Workers that start later have no more. A grant
 * of single paths cannot be taken from one of everything, so larder starts with a grant of `/`.
 * Without that grant nothing changes.
 */
export function confineTo({ read, write }: NeededFiles): void {
  for (const [name, paths] of [["read", read], ["write", write]] as const) {
    for (const path of paths) {
      // Deno would prompt the user for a permission that this process lacks.
      const { state } = Deno.permissions.querySync({ name, path });
      if (state === "granted") Deno.permissions.requestSync({ name, path });
    }
    Deno.permissions.revokeSync({ name, path: ROOT });
  }
}

/** The folder of the files, or of the sockets, of a database. */
function databaseFolders(database: DatabasePlace): readonly (string | undefined)[] {
  // SQLite has further files beside the database, and a migration its backup.
  if (database.kind === "sqlite") return [ownFolder(database.path)];
  const host = new URL(database.url).searchParams.get("host");
  return host?.startsWith("/") ? [host] : [];
}

/** The folder of a file; the file alone if that is the root or the working directory. */
function ownFolder(file: string): string {
  const folder = dirname(file);
  return folder === "/" || folder === "." ? file : folder;
}

/** The files and folders of all options. */
function filesOf(settings: Settings): readonly string[] {
  const table: OptionTable = OPTIONS;
  const keys = Object.keys(OPTIONS) as (keyof Settings)[];
  return keys.filter((key) => table[key]?.kind === path)
    .flatMap((key) => typeof settings[key] === "string" ? [settings[key]] : []);
}

function present(values: readonly (string | undefined)[]): readonly string[] {
  return values.flatMap((value) => value ? [value] : []);
}
