import { dirname } from "node:path";
import type { OptionTable } from "../config/kinds/option.ts";
import { path } from "../config/kinds/plain.ts";
import { OPTIONS, type Settings } from "../config/options.ts";
import { storePlaces } from "./folders.ts";
import { CERTIFICATE_BUNDLES, CERTIFICATE_VARIABLES } from "./system_certificates.ts";
import { GROUPS_FILE } from "./unix_socket.ts";

/** The files that a server needs, and nothing else. */
export interface NeededFiles {
  readonly read: readonly (string | URL)[];
  readonly write: readonly string[];
}

/** larder's own sources: migrations, the page, and the code of Workers. */
const SOURCES = new URL("../..", import.meta.url);

/** What a server with these settings reads and writes. */
export function neededFiles(
  settings: Settings,
  variable: (name: string) => string | undefined,
): NeededFiles {
  const { databasePath } = storePlaces(settings);
  const address = settings["server.addr"];
  const sockets = [
    ...address.kind === "unix" ? [address.path] : [],
    ...present([variable("NOTIFY_SOCKET")]),
  ];
  const secretKey = settings["cache.secret-key-path"];
  const write = [
    settings["cache.storage-local"],
    // SQLite has further files beside the database, and a migration its backup.
    ownFolder(databasePath),
    ...present([settings["cache.temp-path"]]),
    // A new key is written beside its place, then linked.
    ...secretKey === undefined ? [] : [ownFolder(secretKey)],
    ...sockets,
  ];
  const read = [
    SOURCES,
    ...write,
    ...filesOf(settings),
    ...present(CERTIFICATE_VARIABLES.map(variable)),
    ...CERTIFICATE_BUNDLES,
    GROUPS_FILE,
  ];
  return { read, write };
}

/**
 * The permissions for these files alone. Those on addresses stay: a redirect of an upstream leads
 * to any host. No subprocess, no foreign code. What this thread may not do is left out, as no
 * Worker may do more.
 */
export function confinedTo({ read, write }: NeededFiles): Deno.PermissionOptionsObject {
  const may = (descriptor: Deno.PermissionDescriptor) =>
    Deno.permissions.querySync(descriptor).state === "granted";
  return {
    read: read.filter((path) => may({ name: "read", path })),
    write: write.filter((path) => may({ name: "write", path })),
    net: "inherit",
    env: "inherit",
    sys: "inherit",
    run: false,
    ffi: false,
  };
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
  return values.filter((value) => value !== undefined);
}
