import type { ChangeWriter, NarinfoFinder, PinFinder } from "../metadata/metadata_store.ts";
import type { StorePathHash } from "../nix/store_path.ts";

export interface PinsDeps {
  readonly metadata: NarinfoFinder & PinFinder & ChangeWriter;
  readonly nowMs: () => number;
  /** Called when the set of protected paths may have changed. */
  readonly changed: () => void;
}

/**
 * The pin roots that clients set. A pin lasts until it is removed, whatever happens to its root.
 *
 * A pin protects its root's closure: each narinfo that stored references reach from the root, and
 * its NAR file. `metadata/sqlite/protection.ts` walks the closure into the table `protected_path`;
 * a reference that arrives later is protected from then on. The statements that list eviction
 * candidates (`metadata/sqlite/space_statements.ts`) leave out protected rows.
 */
export class Pins {
  readonly #deps: PinsDeps;

  constructor(deps: PinsDeps) {
    this.#deps = deps;
  }

  /** False if the narinfo is not stored. Fetches nothing; may be repeated. */
  async pin(storePathHash: StorePathHash): Promise<boolean> {
    const { metadata, nowMs, changed } = this.#deps;
    if (await metadata.findPin(storePathHash) !== undefined) return true;
    if (await metadata.findNarinfo(storePathHash) === undefined) return false;
    await metadata.apply([{ kind: "put-pin", pin: { storePathHash, pinnedAtMs: nowMs() } }]);
    changed();
    return true;
  }

  /** Unpins a root. Does nothing if it is not pinned. */
  async unpin(storePathHash: StorePathHash): Promise<void> {
    const { metadata, changed } = this.#deps;
    await metadata.apply([{ kind: "remove-pin", storePathHash }]);
    changed();
  }

  /** Hashes of the pin roots in the order of pinning. */
  async list(): Promise<readonly StorePathHash[]> {
    return (await this.#deps.metadata.pins()).map(({ storePathHash }) => storePathHash);
  }
}
