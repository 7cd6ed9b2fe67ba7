import { Failure } from "../../../base/failure.ts";
import { fileBytes } from "../../../base/files.ts";

/** The storage and the database of an ncps. */
export interface NcpsPlaces {
  /** The folder that has `nar` and `chunk`. */
  readonly store: string;
  readonly databasePath: string;
}

/** `/var/lib/ncps` as ncps makes it, and one folder up or down. */
const STORES = ["store", "store/store"];
const DATABASES = ["db/db.sqlite", "../db/db.sqlite", "var/ncps/db/db.sqlite"];

const SQLITE_REGEXP = /^sqlite:(?:\/\/(?=\/))?([^?]+)(?:\?.*)?$/;
const FILE_NAME_REGEXP = /^[0-9a-z]{3,}(?:\.[0-9a-z.]+)?$/;

/** Throws a Failure where `folder` is no storage of an ncps, or has no database. */
export function ncpsPlaces(folder: string, databaseUrl: string | undefined): NcpsPlaces {
  const store = STORES.map((name) => `${folder}/${name}`)
    .find((path) => ["nar", "chunk", "narinfo"].some((name) => exists(`${path}/${name}`)));
  if (store === undefined) {
    const expected = "give the folder of its --cache-storage-local";
    throw new Failure("broken", `Cannot import ${folder}: it has no store/nar; ${expected}`);
  }
  if (databaseUrl !== undefined) return { store, databasePath: pathOf(databaseUrl) };
  const databasePath = DATABASES.map((name) => `${folder}/${name}`).find(exists);
  if (databasePath === undefined) {
    const hint = "give the --cache-database-url of ncps with --database";
    throw new Failure("broken", `Cannot import ${folder}: it has no db/db.sqlite; ${hint}`);
  }
  return { store, databasePath };
}

/** Path of a file in ncps's folder. Throws a Failure for a name that leaves the folder. */
export function shardedPath(folder: string, name: string): string {
  if (!FILE_NAME_REGEXP.test(name)) {
    throw new Failure("corrupt", `Cannot use ${JSON.stringify(name)} as a file name of ncps`);
  }
  return `${folder}/${name.slice(0, 1)}/${name.slice(0, 2)}/${name}`;
}

function pathOf(databaseUrl: string): string {
  const path = SQLITE_REGEXP.exec(databaseUrl)?.[1];
  if (path !== undefined) return path;
  const [scheme = "", ...others] = databaseUrl.split(":");
  // URLs may contain a password.
  const shown = others.length === 0 ? scheme : `${scheme}:…`;
  const hint = "larder reads the SQLite database of an ncps only; write sqlite:/PATH";
  throw new Failure("broken", `Cannot use --database ${shown}: ${hint}`);
}

function exists(path: string): boolean {
  return fileBytes(path) !== undefined;
}
