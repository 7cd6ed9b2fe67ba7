import type { MetadataStore } from "../../metadata/metadata_store.ts";
import type { PendingFile } from "../../metadata/space_keeper.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { NarStore } from "../../storage/nar_store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ShardComparison } from "./compare_shard.ts";

export interface MenderDeps {
  readonly metadata: MetadataStore;
  readonly nars: NarStore;
  /** Removes the files that its argument gives up, while nobody puts one in their place. */
  readonly removeFiles: (giveUp: () => Promise<readonly PendingFile[]>) => Promise<unknown>;
  /** NAR files that are being read or downloaded. */
  readonly busy: () => ReadonlySet<NarName>;
  readonly owner: string;
  readonly log: Logger;
}

/** Mends what rows and files do not agree on, after a second look at each. */
export class Mender {
  readonly #deps: MenderDeps;

  constructor(deps: MenderDeps) {
    this.#deps = deps;
  }

  /** Resolves to how many were mended. */
  async mend({ lost, stray }: Pick<ShardComparison, "lost" | "stray">): Promise<number> {
    if (lost.length + stray.length === 0) return 0;
    const files: PendingFile[] = [];
    await this.#deps.removeFiles(async () => {
      const pending = await this.#deps.metadata.pendingFiles();
      // A file on its way belongs to whoever has it under way.
      const spared = new Set([...this.#deps.busy(), ...pending.map(({ narName }) => narName)]);
      for (const name of lost) if (!spared.has(name)) files.push(...await this.#lost(name));
      for (const name of stray) if (!spared.has(name)) files.push(...await this.#stray(name));
      return files;
    });
    return files.length;
  }

  /** Gives up a file whose bytes are known to be wrong. */
  async condemn(narName: NarName): Promise<void> {
    const { metadata, owner, removeFiles } = this.#deps;
    await removeFiles(async () => {
      const kept = (await metadata.findNar(narName))?.kept;
      if (kept === undefined) return [];
      await metadata.apply([{ kind: "nar-condemned", narName, owner }]);
      return [{ narName, owner, fileSize: kept.fileSize }];
    });
  }

  async #lost(narName: NarName): Promise<readonly PendingFile[]> {
    const { metadata, nars, owner, log } = this.#deps;
    const kept = (await metadata.findNar(narName))?.kept;
    if (kept === undefined) return [];
    using stored = await nars.open(narName);
    if (stored?.fileSize === kept.fileSize) return [];
    const facts = { nar: narName, expected: kept.fileSize, found: stored?.fileSize ?? "nothing" };
    log.error("stored nar is damaged", facts);
    await metadata.apply([{ kind: "nar-condemned", narName, owner }]);
    return [{ narName, owner, fileSize: kept.fileSize }];
  }

  async #stray(narName: NarName): Promise<readonly PendingFile[]> {
    const { metadata, owner, log } = this.#deps;
    if ((await metadata.findNar(narName))?.kept !== undefined) return [];
    log.warn("stray nar removed", { nar: narName });
    return [{ narName, owner, fileSize: 0 }];
  }
}
