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
 * A pin protects its root's closure: each path that stored references reach from the root. The
 * stored parts of such a path stay: its narinfo, and the NAR file that this narinfo names. A path
 * that arrives later is protected from then on, and so are its references. Eviction and retention
 * leave all that out. A pin protects nothing from a DELETE, and neither documents nor staged NARs.
 *
 * The walk along the references fills the table `protected_path`; its changes set `protected` in
 * `narinfo_use`. Eviction and retention read that column.
 *
 * SQLite: `metadata/sqlite/protection.ts` walks, and triggers in
 * `metadata/schema/0019_initial.sqlite.sql` set the column. `coldNarinfos` and `coldEmpties` in
 * `metadata/sqlite/space_statements.ts` read it. PostgreSQL: `protect` and `set_protected` in
 * `metadata/schema/0015_initial.postgres.sql` walk and set, `coldest` and `remove_empties` in
 * `0004_space.postgres.sql` read.
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
}
