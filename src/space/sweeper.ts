import { messageOf } from "../base/failure.ts";
import type { ChangeWriter, KeptFile } from "../metadata/metadata_store.ts";
import type { PendingFile, SpaceKeeper } from "../metadata/space_keeper.ts";
import type { NarWriter } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface SweeperDeps {
  readonly metadata: ChangeWriter & Pick<SpaceKeeper, "pendingFiles">;
  readonly nars: Pick<NarWriter, "remove">;
  /** Names this process. */
  readonly owner: string;
  readonly log: Logger;
}

/**
 * Removes stored objects that are marked for removal, and then their marks. No name is used twice,
 * so that nobody waits for it. A file that somebody has open survives its removal.
 */
export class Sweeper {
  readonly #deps: SweeperDeps;

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
  }

  /** Marks a kept file for removal, and sweeps it. One that has taken its place stays. */
  async markAndSweep({ at, fileSize }: KeptFile): Promise<void> {
    const { metadata, owner } = this.#deps;
    await metadata.apply([{ kind: "nar-marked", at, owner }]);
    await this.sweep([{ at, owner, fileSize }]);
  }

  /**
   * Resolves to those that are gone from the store and from the accounts. One that cannot be
   * removed stays counted, and is logged.
   */
  async sweep(marked: readonly PendingFile[]): Promise<readonly PendingFile[]> {
    const outcomes = await Promise.all(marked.map((file) => this.#isGone(file)));
    const gone = marked.filter((_, index) => outcomes[index]);
    await this.#deps.metadata.apply(gone.map(({ at }) => ({ kind: "nar-gone" as const, at })));
    return gone;
  }

  /** Sweeps what this process has marked, and not removed yet. */
  async sweepOwn(): Promise<readonly PendingFile[]> {
    const { metadata, owner } = this.#deps;
    const pending = await metadata.pendingFiles();
    return await this.sweep(
      pending.filter((file) => file.owner === owner && file.fileSize > 0),
    );
  }

  async #isGone({ at }: PendingFile): Promise<boolean> {
    const { nars, log } = this.#deps;
    try {
      await nars.remove(at);
      return true;
    } catch (error) {
      log.error("nar not removed", { nar: at, error: messageOf(error) });
      return false;
    }
  }
}
