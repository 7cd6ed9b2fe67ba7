import type { KeptFile } from "../../metadata/metadata_store.ts";
import { narNameOf, type StoredName } from "../../nix/stored_name.ts";
import type { Sweeper } from "../../space/sweeper.ts";
import type { OpenOptions } from "../../storage/nar_store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { KeptNars } from "../kept/kept_nars.ts";
import { type DifferenceStores, findLost, isOrphan } from "./check_difference.ts";
import type { ShardComparison } from "./compare_shard.ts";

export interface RepairerDeps {
  readonly stores: DifferenceStores;
  readonly sweeper: Pick<Sweeper, "sweep" | "markAndSweep">;
  readonly owner: string;
  readonly log: Logger;
  /** Told of lost files in place of the log: it says when their NARs are stored again. */
  readonly kept?: Pick<KeptNars, "noteLost">;
}

/** Removes stored files that are wrong, and repairs differences between rows and files. */
export class Repairer {
  readonly #deps: RepairerDeps;

  constructor(deps: RepairerDeps) {
    this.#deps = deps;
  }

  /** Removes a file whose content is wrong: the next request fetches it again. */
  async removeWrong(kept: KeptFile): Promise<void> {
    await this.#deps.sweeper.markAndSweep(kept, "lost");
  }

  /** Checks each difference again, and repairs it. Resolves to the count of repairs. */
  async repair(
    { lost, orphans }: Pick<ShardComparison, "lost" | "orphans">,
    options: OpenOptions,
  ): Promise<number> {
    let repaired = 0;
    for (const at of lost) if (await this.#repairLost(at, options)) repaired++;
    for (const at of orphans) if (await this.#repairOrphan(at, options)) repaired++;
    return repaired;
  }

  async #repairLost(at: StoredName, options: OpenOptions): Promise<boolean> {
    const { stores, sweeper, log, kept: nars } = this.#deps;
    const lost = await findLost(stores, at, options);
    if (lost === undefined) return false;
    const { kept, foundBytes: found = "nothing" } = lost;
    const facts = { nar: narNameOf(at), expected: kept.fileSize, found };
    if (nars === undefined) log.event("stored-nar-damaged", facts);
    else nars.noteLost(kept, facts);
    await sweeper.markAndSweep(kept, "lost");
    return true;
  }

  async #repairOrphan(at: StoredName, options: OpenOptions): Promise<boolean> {
    const { stores, sweeper, owner, log } = this.#deps;
    if (!await isOrphan(stores, at, options)) return false;
    log.event("orphan-nar-removed", { nar: at });
    await sweeper.sweep([{ at, owner, fileSize: 0 }]);
    return true;
  }
}
