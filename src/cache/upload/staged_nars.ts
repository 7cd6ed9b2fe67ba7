import { messageOf } from "../../base/failure.ts";
import type { SpaceKeeper } from "../../metadata/space_keeper.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import type { Sweeper } from "../../space/sweeper.ts";
import type { Logger } from "../../telemetry/logger.ts";

export interface StagedNarsDeps {
  readonly metadata: Pick<SpaceKeeper, "expireNars">;
  readonly sweeper: Pick<Sweeper, "sweep">;
  readonly reads: Pick<ActiveReads, "names">;
  /** This process, in the marks of files. */
  readonly owner: string;
  /** Called when files were removed. */
  readonly changed: () => void;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** Removes the uploaded NARs whose narinfo has not come in time. Never rejects. */
export async function expireStagedNars(deps: StagedNarsDeps): Promise<void> {
  const { metadata, sweeper, reads, owner, changed, nowMs, log } = deps;
  try {
    const order = { atMs: nowMs(), spared: reads.names(), owner };
    const gone = await sweeper.sweep(await metadata.expireNars(order));
    if (gone.length === 0) return;
    changed();
    for (const { at, fileSize } of gone) {
      log.info("upload expired", { nar: at, file_size: fileSize });
    }
  } catch (error) {
    log.event("expired-uploads-not-removed", { error: messageOf(error) });
  }
}
