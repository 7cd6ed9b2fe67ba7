import { messageOf } from "../base/failure.ts";
import type { ChangeWriter } from "../metadata/metadata_store.ts";
import type { SpaceKeeper } from "../metadata/space_keeper.ts";
import type { NarWriter } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface RecoverDeps {
  readonly metadata: Pick<SpaceKeeper, "pendingFiles"> & ChangeWriter;
  readonly nars: Pick<NarWriter, "remove">;
  /** Whether the process that an object on its way belongs to still runs. */
  readonly isAlive: (owner: string) => boolean;
  readonly log: Logger;
}

/**
 * Ends what dead processes began: after it no file is counted but absent, nor present but not
 * counted. No row keeps an object that was on its way in or out, so that all of them go. Looks at
 * those few alone, never at all files.
 */
export async function recover({ metadata, nars, isAlive, log }: RecoverDeps): Promise<void> {
  for (const { at, owner } of await metadata.pendingFiles()) {
    if (isAlive(owner)) continue;
    try {
      await nars.remove(at);
      await metadata.apply([{ kind: "nar-gone", at }]);
      log.info("interrupted nar settled", { nar: at });
    } catch (error) {
      // It stays on the list, and counted, for the next start.
      log.error("interrupted nar not settled", { nar: at, error: messageOf(error) });
    }
  }
}
