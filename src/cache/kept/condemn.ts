import { messageOf } from "../../base/failure.ts";
import type { ChangeWriter, NarFinder } from "../../metadata/metadata_store.ts";
import type { PendingFile } from "../../metadata/space_keeper.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { type FileIdentity, isSameIdentity, type NarReader } from "../../storage/nar_store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Downloads } from "../download/downloads.ts";

export interface CondemnDeps {
  readonly metadata: NarFinder & ChangeWriter;
  readonly nars: NarReader;
  readonly downloads: Pick<Downloads, "find">;
  /** Removes the files that its argument gives up, while nobody puts one in their place. */
  readonly removeFiles: (giveUp: () => Promise<readonly PendingFile[]>) => Promise<unknown>;
  readonly owner: string;
  /** Told when something went. */
  readonly changed: () => void;
  readonly log: Logger;
}

/**
 * Gives up a kept file whose bytes are wrong: row first, then the file. One that a download is
 * about to replace, or has replaced, is left alone. Never rejects: what fails is in the log.
 */
export type Condemn = (narName: NarName, identity: FileIdentity) => Promise<void>;

export function createCondemn(deps: CondemnDeps): Condemn {
  const { metadata, nars, downloads, removeFiles, owner, changed, log } = deps;

  return async function condemn(narName, identity) {
    try {
      await removeFiles(async () => {
        // One that begins after this waits for us before it puts its file in place.
        if (downloads.find(narName) !== undefined) return [];
        using stored = await nars.open(narName);
        if (stored !== undefined && !isSameIdentity(stored.identity, identity)) return [];
        const kept = (await metadata.findNar(narName))?.kept;
        if (kept === undefined) return [];
        await metadata.apply([{ kind: "nar-condemned", narName, owner }]);
        return [{ narName, owner, fileSize: kept.fileSize }];
      });
      changed();
    } catch (error) {
      log.warn("damaged nar not removed", { nar: narName, error: messageOf(error) });
    }
  };
}
