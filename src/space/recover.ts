import { messageOf } from "../base/failure.ts";
import type { ChangeWriter } from "../metadata/metadata_store.ts";
import type { SpaceKeeper } from "../metadata/space_keeper.ts";
import type { NarWriter } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface RecoverDeps {
  readonly metadata: Pick<SpaceKeeper, "pendingFiles"> & ChangeWriter;
  readonly nars: Pick<NarWriter, "remove">;
  /** True while the process that owns a pending object runs. */
  readonly isAlive: (owner: string) => boolean;
  readonly log: Logger;
}

/**
 * Removes the pending objects of dead processes: no row keeps them. Afterwards every counted file
 * exists, and every existing file is counted. Reads only the pending rows, never the list of all
 * files.
 */
export async function recover({ metadata, nars, isAlive, log }: RecoverDeps): Promise<void> {
  for (const { at, owner } of await metadata.pendingFiles()) {
    if (isAlive(owner)) continue;
    try {
      await nars.remove(at);
      await metadata.apply([{ kind: "nar-gone", at }]);
      log.info("interrupted nar settled", { nar: at });
    } catch (error) {
      // The object stays pending and counted until the next start.
      log.error("interrupted nar not settled", { nar: at, error: messageOf(error) });
    }
  }
}
