import type { ChangeWriter, NarinfoFinder, PinFinder } from "../metadata/metadata_store.ts";
import type { StorePathHash } from "../nix/store_path.ts";

export interface PinsDeps {
  readonly metadata: NarinfoFinder & PinFinder & ChangeWriter;
  readonly nowMs: () => number;
  /** Told when what is protected may have changed. */
  readonly changed: () => void;
}

/**
 * The pin roots that clients set. A pin lasts until it is removed, whatever its root becomes.
 *
 * A pin protects its root's closure: each narinfo that the references of stored narinfos reach
 * from the root, and the NAR file of each. `metadata/sqlite/protection.ts` walks the closure into
 * the table `protected_path`; a reference that is not stored yet is protected once it is. The
 * statements that list candidates for eviction (`metadata/sqlite/space_statements.ts`) leave out
 * protected rows.
 */
export class Pins {
  readonly #deps: PinsDeps;

  constructor(deps: PinsDeps) {
    this.#deps = deps;
  }

  /** False when there is no such narinfo to pin. Pinning fetches nothing, and may be repeated. */
  async pin(storePathHash: StorePathHash): Promise<boolean> {
    const { metadata, nowMs, changed } = this.#deps;
    if (await metadata.findPin(storePathHash) !== undefined) return true;
    if (await metadata.findNarinfo(storePathHash) === undefined) return false;
    await metadata.apply([{ kind: "put-pin", pin: { storePathHash, pinnedAtMs: nowMs() } }]);
    changed();
    return true;
  }

  /** What is not pinned stays so. */
  async unpin(storePathHash: StorePathHash): Promise<void> {
    const { metadata, changed } = this.#deps;
    await metadata.apply([{ kind: "remove-pin", storePathHash }]);
    changed();
  }

  /** In the order of pinning. */
  async list(): Promise<readonly StorePathHash[]> {
    return (await this.#deps.metadata.pins()).map(({ storePathHash }) => storePathHash);
  }
}
