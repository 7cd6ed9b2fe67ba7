import { Failure, reasonOf } from "../base/failure.ts";
import type { Settings } from "../config/options.ts";
import type { StorePlaces } from "./back_ends/back_ends.ts";
import type { DatabasePlace } from "./back_ends/metadata_back_end.ts";
import type { NarPlace } from "./back_ends/nar_back_end.ts";

/** The folders of the storage, all of them writable and listable. */
export interface Folders {
  readonly storage: string;
  readonly temp: string;
}

/** A place of NAR files, as a command names it. */
export type StoragePlace =
  | { readonly kind: "local"; readonly folder: string }
  | { readonly kind: "s3"; readonly bucket: string };

/** Creates missing folders. Throws a Failure that names an unusable one. */
export function prepareFolders(settings: Settings): Folders {
  const storage = storageFolder(settings);
  const { nars } = storePlaces(settings);
  const temp = tempFolderOf(settings, { kind: "local", folder: storage });
  prepare(storage, "--cache-storage-local");
  if (nars.kind === "local") prepare(nars.folder, "--cache-storage-local");
  prepare(temp, settings["cache.temp-path"] ? "--cache-temp-path" : "--cache-storage-local");
  return { storage, temp };
}

export function storePlaces(settings: Settings): StorePlaces {
  return {
    database: databasePlace(settings),
    nars: narPlace(settings),
  };
}

function databasePlace(settings: Settings): DatabasePlace {
  const database = settings["cache.database-url"];
  const password = settings["cache.database-password"];
  if (database.kind === "sqlite" || password === undefined) return database;
  const url = new URL(database.url);
  url.password = encodeURIComponent(password);
  return { kind: "postgres", url: url.href };
}

function narPlace(settings: Settings): NarPlace {
  const bucket = settings["cache.storage-s3-bucket"];
  if (bucket !== undefined) return narPlaceAt(settings, { kind: "s3", bucket });
  return narPlaceAt(settings, { kind: "local", folder: storageFolder(settings) });
}

/** The place of NARs, with the endpoint and the keys of the settings. */
export function narPlaceAt(settings: Settings, place: StoragePlace): NarPlace {
  if (place.kind === "local") return { kind: "local", folder: `${place.folder}/nar` };
  const accessKeyId = settings["cache.storage-s3-access-key-id"];
  const secretAccessKey = settings["cache.storage-s3-secret-access-key"];
  // A rule of the settings requires both or none.
  const isGiven = accessKeyId !== undefined && secretAccessKey !== undefined;
  const s3 = {
    bucket: place.bucket,
    endpoint: settings["cache.storage-s3-endpoint"],
    region: settings["cache.storage-s3-region"],
    credentials: isGiven ? { accessKeyId, secretAccessKey } : undefined,
    forcePathStyle: settings["cache.storage-s3-force-path-style"],
  };
  return { kind: "s3", s3 };
}

/** The folder of partial files for that place: a file moves from it without a copy. */
export function tempFolderOf(settings: Settings, place: StoragePlace): string {
  const near = place.kind === "local" ? place.folder : storageFolder(settings);
  return settings["cache.temp-path"] ?? `${near}/tmp`;
}

/** Path of the storage folder, without a slash at its end. */
export function storageFolder(settings: Settings): string {
  return settings["cache.storage-local"].replace(/(?<=.)\/+$/, "");
}

function prepare(folder: string, option: string): void {
  attempt("write to", () => {
    Deno.mkdirSync(folder, { recursive: true });
    // Permissions do not show a read-only mount or a full disk.
    Deno.removeSync(Deno.makeTempFileSync({ dir: folder, prefix: ".writable-" }));
  });
  // Opening proves that listing is allowed; listing a million NARs would take long.
  attempt("read", () => Deno.openSync(folder).close());

  function attempt(verb: "write to" | "read", work: () => void): void {
    try {
      work();
    } catch (error) {
      const able = verb === "read" ? "readable" : "writable";
      throw new Failure(
        "broken",
        `Cannot ${verb} directory ${folder}: ${reasonOf(error)}; give another with ${option}, ` +
          `or make it ${able} for this user`,
        {},
        error,
      );
    }
  }
}
