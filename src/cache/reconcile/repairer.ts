import type { KeptFile, NarFinder } from "../../metadata/metadata_store.ts";
import type { SpaceKeeper } from "../../metadata/space_keeper.ts";
import { narNameOf, type StoredName } from "../../nix/stored_name.ts";
import type { Sweeper } from "../../space/sweeper.ts";
import type { NarReader, OpenOptions } from "../../storage/nar_store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ShardComparison } from "./compare_shard.ts";

export interface RepairerDeps {
  readonly metadata: Pick<NarFinder, "findNar"> & Pick<SpaceKeeper, "pendingFiles">;
  readonly nars: NarReader;
  readonly sweeper: Pick<Sweeper, "sweep" | "markAndSweep">;
  readonly owner: string;
  readonly log: Logger;
}

/** Repairs differences between rows and files, after a second check of each. */
export class Repairer {
  readonly #deps: RepairerDeps;

  constructor(deps: RepairerDeps) {
    this.#deps = deps;
  }

  /** Resolves to the count of repairs. */
  async repair(
    { lost, stray }: Pick<ShardComparison, "lost" | "stray">,
    options: OpenOptions,
  ): Promise<number> {
    if (lost.length + stray.length === 0) return 0;
    const { metadata } = this.#deps;
    // Before the rows: an object that is neither pending nor stored will never be stored.
    const pending = new Set((await metadata.pendingFiles()).map(({ at }) => at));
    let repaired = 0;
    for (const at of lost) if (await this.#repairLost(at, options)) repaired++;
    for (const at of stray) if (!pending.has(at) && await this.#repairStray(at)) repaired++;
    return repaired;
  }

  async #repairLost(at: StoredName, options: OpenOptions): Promise<boolean> {
    const { nars, sweeper, log } = this.#deps;
    const kept = await this.#kept(at);
    if (kept === undefined) return false;
    await using stored = await nars.open(at, options);
    if (stored?.fileSize === kept.fileSize) return false;
    const found = stored?.fileSize ?? "nothing";
    log.error("stored nar is damaged", { nar: narNameOf(at), expected: kept.fileSize, found });
    await sweeper.markAndSweep(kept);
    return true;
  }

  async #repairStray(at: StoredName): Promise<boolean> {
    const { sweeper, owner, log } = this.#deps;
    if (await this.#kept(at) !== undefined) return false;
    log.warn("stray nar removed", { nar: at });
    await sweeper.sweep([{ at, owner, fileSize: 0 }]);
    return true;
  }

  /** The row of the NAR, if it keeps this object. */
  async #kept(at: StoredName): Promise<KeptFile | undefined> {
    const nar = await this.#deps.metadata.findNar(narNameOf(at), { fresh: true });
    return nar?.kept?.at === at ? nar.kept : undefined;
  }
}
