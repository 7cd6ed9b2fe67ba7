import type { MetadataStore } from "../metadata/metadata_store.ts";
import { formerNames } from "./forms/recompressed.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { ActiveReads } from "../space/active_reads.ts";
import type { Sweeper } from "../space/sweeper.ts";

export interface RemoverDeps {
  readonly metadata: MetadataStore;
  readonly sweeper: Pick<Sweeper, "markAndSweep">;
  readonly reads: Pick<ActiveReads, "has">;
  /** Called when an entry was removed. */
  readonly changed: () => void;
}

/** Removes entries by request. A pin does not prevent that, and stays. */
export class Remover {
  readonly #deps: RemoverDeps;

  constructor(deps: RemoverDeps) {
    this.#deps = deps;
  }

  /**
   * Removes a narinfo, and its NAR file unless another narinfo names it. Forgets its signed facts:
   * the next upload may have others. False when nothing of it is here. A file that is being read
   * stays until eviction.
   */
  async narinfo(storePathHash: StorePathHash): Promise<boolean> {
    const { metadata, changed } = this.#deps;
    const row = await metadata.findNarinfo(storePathHash);
    const forget = { kind: "forget-signed", storePathHash } as const;
    if (row === undefined) {
      if (await metadata.findSigned(storePathHash) === undefined) return false;
      await metadata.apply([forget]);
      return true;
    }
    await metadata.apply([{ kind: "remove-narinfo", storePathHash }, forget]);
    const sharers = await metadata.narinfosOf(row.narName);
    if (sharers.length === 0) await this.#file(row.narName);
    changed();
    return true;
  }

  /** Removes a NAR file, even one that narinfos name: the next request fetches it again. */
  async nar(narName: NarName): Promise<boolean> {
    let removed = await this.#file(narName);
    for (const former of formerNames(narName)) removed ||= await this.#file(former);
    if (removed) this.#deps.changed();
    return removed;
  }

  /** False when there is no such file, or it is read or downloaded. */
  async #file(narName: NarName): Promise<boolean> {
    const { metadata, sweeper, reads } = this.#deps;
    const kept = (await metadata.findNar(narName))?.kept;
    if (kept === undefined || reads.has(narName)) return false;
    await sweeper.markAndSweep(kept);
    return true;
  }
}
