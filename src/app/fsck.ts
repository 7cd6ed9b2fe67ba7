import { Failure } from "../base/failure.ts";
import {
  fsck,
  type FsckOrder,
  type FsckProgress,
  type FsckWatcher,
} from "../cache/reconcile/fsck.ts";
import { Repairer } from "../cache/reconcile/repairer.ts";
import type { Settings } from "../config/options.ts";
import { Sweeper } from "../space/sweeper.ts";
import { openDatabase } from "../metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../metadata/sqlite/sqlite_metadata_store.ts";
import { LocalNarStore, shards } from "../storage/local/local_nar_store.ts";
import { createLogger } from "../telemetry/logger.ts";

/** Lock owner of a check, which keeps files only while it runs. */
const OWNER = "fsck";

/** Checks the storage of the settings. Throws a Failure if there is none. */
export async function fsckStorage(
  settings: Settings,
  order: FsckOrder,
  watcher: FsckWatcher,
): Promise<FsckProgress> {
  const { path } = settings["cache.database-url"];
  const folder = `${settings["cache.storage-local"].replace(/(?<=.)\/+$/, "")}/nar`;
  for (const needed of [path, folder]) requireStorage(needed);
  await using metadata = new SqliteMetadataStore(await openDatabase(path));
  const nars = new LocalNarStore(folder);
  // The watcher gets all findings, not the log.
  const log = createLogger("error", { write: () => undefined });
  const sweeper = new Sweeper({ metadata, nars, owner: OWNER, log });
  const repairer = new Repairer({ metadata, nars, sweeper, owner: OWNER, log });
  const deps = {
    shards: shards(),
    metadata,
    nars,
    damage: () => metadata.damage(),
    repairer,
    sweeper,
  };
  return await fsck(deps, order, watcher);
}

function requireStorage(path: string): void {
  try {
    Deno.statSync(path);
  } catch (error) {
    const todo = "give the storage with --cache-storage-local, or the user who may read it";
    throw new Failure("broken", `Cannot check ${path}: it is unreadable; ${todo}`, {}, error);
  }
}
