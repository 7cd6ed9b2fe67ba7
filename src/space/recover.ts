import { messageOf } from "../base/failure.ts";
import type { ChangeWriter, NarFinder } from "../metadata/metadata_store.ts";
import type { PendingFile, SpaceKeeper } from "../metadata/space_keeper.ts";
import type { NarReader, NarWriter } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface RecoverDeps {
  readonly metadata: SpaceKeeper & NarFinder & ChangeWriter;
  readonly nars: NarReader & NarWriter;
  /** Whether the process that a file on its way belongs to still runs. */
  readonly isAlive: (owner: string) => boolean;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/**
 * Ends what dead processes began: after it no file is counted but absent, nor present but not
 * counted. Looks at the few files that were on their way, never at all of them.
 */
export async function recover(deps: RecoverDeps): Promise<void> {
  const { metadata, isAlive, log } = deps;
  for (const file of await metadata.pendingFiles()) {
    if (isAlive(file.owner)) continue;
    try {
      await settle(deps, file);
      log.info("interrupted nar settled", { nar: file.narName });
    } catch (error) {
      // It stays on the list, and counted, for the next start.
      log.error("interrupted nar not settled", { nar: file.narName, error: messageOf(error) });
    }
  }
}

async function settle(
  { metadata, nars, nowMs }: RecoverDeps,
  { narName }: PendingFile,
): Promise<void> {
  const kept = (await metadata.findNar(narName))?.kept;
  if (kept !== undefined) {
    // A file that was to be replaced: the old one is good as long as it is whole.
    using stored = await nars.open(narName);
    if (stored?.fileSize === kept.fileSize) {
      return await metadata.apply([{ kind: "nar-kept", narName, file: kept, atMs: nowMs() }]);
    }
  }
  await nars.remove(narName);
  await metadata.apply([{ kind: "nar-gone", narName }]);
}
