import { Failure, reasonOf } from "../base/failure.ts";
import type { Settings } from "../config/options.ts";
import type { StorePlaces } from "./back_ends/back_ends.ts";

/** The folders of the storage, all of them writable and listable. */
export interface Folders {
  readonly storage: string;
  readonly temp: string;
}

/** Creates missing folders. Throws a Failure that names an unusable one. */
export function prepareFolders(settings: Settings): Folders {
  const storage = storageFolder(settings);
  const { narFolder } = storePlaces(settings);
  const temp = settings["cache.temp-path"] ?? `${storage}/tmp`;
  prepare(storage, "--cache-storage-local");
  prepare(narFolder, "--cache-storage-local");
  prepare(temp, settings["cache.temp-path"] ? "--cache-temp-path" : "--cache-storage-local");
  return { storage, temp };
}

export function storePlaces(settings: Settings): StorePlaces {
  return {
    databasePath: settings["cache.database-url"].path,
    narFolder: `${storageFolder(settings)}/nar`,
  };
}

/** Without a slash at its end. */
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
