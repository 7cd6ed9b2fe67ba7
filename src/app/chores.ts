import { messageOf } from "../base/failure.ts";
import { removeOrphans } from "../storage/local/orphans.ts";
import type { HotMetadataStore } from "../metadata/hot_metadata_store.ts";
import type { SqliteMetadataStore } from "../metadata/sqlite/sqlite_metadata_store.ts";
import type { Logger } from "../telemetry/logger.ts";

const ORPHANS_EVERY_MS = 60 * 60 * 1_000;

/** How old what another process has changed may look here. */
const LOOK_FOR_CHANGES_EVERY_MS = 1_000;

export interface ChoresDeps {
  readonly tempFolder: string;
  readonly metadata: SqliteMetadataStore;
  readonly hotMetadata: HotMetadataStore;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** What is done now and then beside the requests, until the result is disposed of. */
export function startChores(deps: ChoresDeps): Disposable {
  const { tempFolder, metadata, hotMetadata, nowMs, log } = deps;
  const orphans = () => removeOrphans(tempFolder, nowMs(), log);
  const changes = () => {
    try {
      if (metadata.changedByOthers()) hotMetadata.forgetAll();
    } catch (error) {
      // The next look will tell; what is in memory may be old until then.
      log.warn("database not looked at", { error: messageOf(error) });
    }
  };
  orphans();
  changes();
  const timers = [
    setInterval(orphans, ORPHANS_EVERY_MS),
    setInterval(changes, LOOK_FOR_CHANGES_EVERY_MS),
  ];
  return { [Symbol.dispose]: () => timers.forEach(clearInterval) };
}
