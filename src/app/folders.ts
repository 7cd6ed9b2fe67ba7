import { Failure, reasonOf } from "../base/failure.ts";
import type { Settings } from "../config/options.ts";

/** Where everything is on disk. All of them exist and can be written and listed. */
export interface Folders {
  readonly storage: string;
  readonly nars: string;
  readonly temp: string;
  /** Locks of the processes that run on the storage. */
  readonly locks: string;
}

/** Makes the folders that are missing. Throws a Failure that names the one that cannot be used. */
export function prepareFolders(settings: Settings): Folders {
  const storage = settings["cache.storage-local"].replace(/(?<=.)\/+$/, "");
  const nars = `${storage}/nar`;
  const temp = settings["cache.temp-path"] ?? `${storage}/tmp`;
  prepare(storage, "--cache-storage-local");
  prepare(nars, "--cache-storage-local");
  prepare(temp, settings["cache.temp-path"] ? "--cache-temp-path" : "--cache-storage-local");
  const locks = `${storage}/run`;
  prepare(locks, "--cache-storage-local");
  return { storage, nars, temp, locks };
}

function prepare(folder: string, option: string): void {
  attempt("write to", () => {
    Deno.mkdirSync(folder, { recursive: true });
    // Permissions do not tell everything (a read-only mount, a full disk): try it.
    Deno.removeSync(Deno.makeTempFileSync({ dir: folder, prefix: ".writable-" }));
  });
  // Who may open it may list it; to list a million NARs would take long.
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
