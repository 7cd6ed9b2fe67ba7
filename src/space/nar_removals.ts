import { messageOf } from "../base/failure.ts";
import type { ChangeWriter } from "../metadata/metadata_store.ts";
import type { PendingFile } from "../metadata/space_keeper.ts";
import type { NarWriter } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface NarRemovalsDeps {
  readonly metadata: ChangeWriter;
  readonly nars: Pick<NarWriter, "remove">;
  readonly log: Logger;
}

/** Removes NAR files that are given up, one batch after the other. */
export class NarRemovals {
  readonly #deps: NarRemovalsDeps;
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: NarRemovalsDeps) {
    this.#deps = deps;
  }

  /**
   * Has `giveUp` choose files, removes them, and resolves to those that are gone from disk and
   * from the accounts. One that cannot be removed stays counted, and is logged.
   */
  batch(giveUp: () => Promise<readonly PendingFile[]>): Promise<readonly PendingFile[]> {
    const batch = this.#last.then(async () => await this.#remove(await giveUp()));
    this.#last = batch.catch(() => undefined);
    return batch;
  }

  /**
   * Resolves when the batches that have begun are over. A download waits for it before it puts
   * its file in place: later batches know of the download and leave its file alone.
   */
  async over(): Promise<void> {
    await this.#last;
  }

  async #remove(files: readonly PendingFile[]): Promise<readonly PendingFile[]> {
    const outcomes = await Promise.all(files.map((file) => this.#isGone(file)));
    const gone = files.filter((_, index) => outcomes[index]);
    await this.#deps.metadata.apply(
      gone.map(({ narName, owner }) => ({ kind: "nar-gone" as const, narName, owner })),
    );
    return gone;
  }

  async #isGone({ narName }: PendingFile): Promise<boolean> {
    const { nars, log } = this.#deps;
    try {
      await nars.remove(narName);
      return true;
    } catch (error) {
      log.error("nar not removed", { nar: narName, error: messageOf(error) });
      return false;
    }
  }
}
