import type {
  Change,
  ChangeOf,
  ChangeWriter,
  NarinfoFinder,
  PinFinder,
  PinNameFinder,
  PinNoter,
  PinRoot,
} from "../metadata/metadata_store.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { PinName } from "./pin_name.ts";

export interface PinsDeps {
  readonly metadata: NarinfoFinder & PinFinder & PinNameFinder & ChangeWriter & PinNoter;
  readonly nowMs: () => number;
  /** Called when the set of protected paths may have changed. */
  readonly changed: () => void;
  /** Called with each pin whose closure is to be kept complete from now on. */
  readonly keepsComplete: (root: StorePathHash) => void;
}

/**
 * The pin roots that clients set. A pin lasts until it is removed, whatever happens to its root. A
 * name holds its newest roots: one that rolls off is unpinned, unless a plain pin or another name
 * holds it.
 *
 * A pin protects its root's closure: each path that stored references reach from the root. The
 * stored parts of such a path stay: its narinfo, and the NAR file that this narinfo names. A path
 * that arrives later is protected from then on, and so are its references. Eviction and retention
 * leave all that out. A pin protects nothing from a DELETE, and neither documents nor staged NARs.
 *
 * The walk along the references fills the table `protected_path`; its changes set `protected` in
 * `narinfo_use`. Eviction and retention read that column.
 *
 * SQLite: `metadata/sqlite/pins.ts` walks, and triggers in
 * `metadata/schema/0019_initial.sqlite.sql` set the column. `coldNarinfos` and `coldEmpties` in
 * `metadata/sqlite/space.ts` read it. PostgreSQL: `protect` and `set_protected` in
 * `metadata/schema/0015_initial.postgres.sql` walk and set, `coldest` and `remove_empties` in
 * `0015_initial.postgres.sql` read.
 */
export class Pins {
  readonly #deps: PinsDeps;

  constructor(deps: PinsDeps) {
    this.#deps = deps;
  }

  /**
   * False if the narinfo is not stored. May be repeated. `keepComplete`: whether larder fetches
   * what is missing of the closure, now and later; `undefined`: as before, at first not.
   */
  async pin(storePathHash: StorePathHash, keepComplete?: boolean): Promise<boolean> {
    const known = await this.#deps.metadata.findPin(storePathHash);
    const pin = { storePathHash, pinnedAtMs: this.#deps.nowMs() };
    const isNew = known === undefined || known.rolls === true;
    if (isNew && !await this.#pin({ kind: "put-pin", pin }, known)) return false;
    await this.#note(storePathHash, keepComplete);
    return true;
  }

  /**
   * Pins the root as the newest one under the name, which keeps its newest `keep` roots. The others
   * leave it, and are unpinned unless something else holds them. False as for `pin`.
   */
  async roll(
    { name, keep }: PinName,
    storePathHash: StorePathHash,
    keepComplete?: boolean,
  ): Promise<boolean> {
    const known = await this.#deps.metadata.findPin(storePathHash);
    const pinnedAtMs = this.#deps.nowMs();
    const change = { kind: "roll-pin", name, storePathHash, pinnedAtMs, keep } as const;
    if (!await this.#pin(change, known)) return false;
    await this.#note(storePathHash, keepComplete);
    return true;
  }

  async #note(root: StorePathHash, keepComplete: boolean | undefined): Promise<void> {
    if (keepComplete === undefined) return;
    const { metadata, changed, keepsComplete } = this.#deps;
    await metadata.notePin(root, { keepComplete });
    changed();
    if (keepComplete) keepsComplete(root);
  }

  /** Unpins a root, whatever holds it: it leaves its names. Does nothing if it is not pinned. */
  async unpin(storePathHash: StorePathHash): Promise<void> {
    await this.#apply({ kind: "remove-pin", storePathHash });
  }

  /**
   * The name gives up its roots. Those that nothing else holds are unpinned. False if it has none.
   */
  async unpinName(name: string): Promise<boolean> {
    const named = await this.#deps.metadata.namedPins();
    if (named.every((pin) => pin.name !== name)) return false;
    await this.#apply({ kind: "unpin-name", name });
    return true;
  }

  async #pin(
    change: ChangeOf<"put-pin" | "roll-pin">,
    known: PinRoot | undefined,
  ): Promise<boolean> {
    const { storePathHash } = change.kind === "put-pin" ? change.pin : change;
    const { metadata } = this.#deps;
    if (known === undefined && await metadata.findNarinfo(storePathHash) === undefined) {
      return false;
    }
    await this.#apply(change);
    return true;
  }

  async #apply(change: Change): Promise<void> {
    await this.#deps.metadata.apply([change]);
    this.#deps.changed();
  }
}
