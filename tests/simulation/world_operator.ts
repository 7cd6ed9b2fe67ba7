import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { clock } from "../../src/runtime/current.ts";
import type { SeededDice } from "./seeded_dice.ts";
import type { WorldMember } from "./world_member.ts";
import type { WorldObject } from "./world_objects.ts";

/** What an operator does, beside pins and unpins. */
const ACTIONS = ["delete narinfo", "delete nar", "gc", "other limit"] as const;

export interface OperatorParts {
  readonly dice: SeededDice;
  readonly objects: readonly WorldObject[];
  readonly metadata: Pick<MetadataStore, "findNarinfo" | "findNar">;
  readonly objectBytesMax: number;
  /** A member that runs; `undefined`: each is down. */
  readonly member: () => WorldMember | undefined;
  /** Stops all members, and starts them with this limit; false: one is down as it is. */
  readonly restartAll: (limitBytes: number) => Promise<boolean>;
  readonly note: (what: string) => void;
  readonly wrong: (what: string) => void;
}

/** An operator who removes entries, runs gc, and restarts larder with another limit. */
export class WorldOperator {
  readonly #parts: OperatorParts;
  /** Closures that are pinned for sure, by root. */
  readonly #pinned = new Map<string, readonly WorldObject[]>();
  /** Paths whose NARs a look found kept, below a pin ever since. */
  readonly #held = new Set<StorePathHash>();

  constructor(parts: OperatorParts) {
    this.#parts = parts;
  }

  /** Call it when the answer to a pin is here. */
  pinned(root: string, closure: readonly WorldObject[]): void {
    this.#pinned.set(root, closure);
  }

  /** Call it before an unpin is sent. */
  unpins(root: string): void {
    this.#pinned.delete(root);
    const pinned = new Set([...this.#pinned.values()].flat());
    for (const { object } of this.#parts.objects) {
      const isPinned = [...pinned].some((one) => one.object === object);
      if (!isPinned) this.#held.delete(object.storePathHash);
    }
  }

  async run(untilMs: number): Promise<void> {
    const { dice, note } = this.#parts;
    while (clock.nowMs() < untilMs) {
      await clock.pause(dice.between(10_000, 300_000));
      await this.look();
      const action = dice.pick(ACTIONS);
      note(`begins: ${action}`);
      note(`ends: ${action}, ${await this.#act(action)}`);
      await this.look();
    }
  }

  /**
   * Fails for a path that eviction took although a pin holds it. A pin holds what stored narinfos
   * lead to.
   */
  async look(): Promise<void> {
    const { metadata, wrong } = this.#parts;
    for (const [root, closure] of this.#pinned) {
      const reached = new Set([closure[0]]);
      for (const one of reached) {
        if (one === undefined) continue;
        const { storePathHash, baseName, references } = one.object;
        const row = await metadata.findNarinfo(storePathHash);
        const nar = row && await metadata.findNar(row.narName);
        // It may have been unpinned since the look began.
        if (!this.#pinned.has(root)) break;
        if (nar?.kept !== undefined) this.#held.add(storePathHash);
        else if (this.#held.delete(storePathHash)) {
          wrong(`${baseName} was here, and ${root} is pinned`);
        }
        if (row === undefined) continue;
        for (const next of closure) {
          if (references.includes(next.object.baseName)) reached.add(next);
        }
      }
    }
  }

  async #act(action: typeof ACTIONS[number]): Promise<string> {
    const { dice, objects, metadata, member, objectBytesMax, restartAll } = this.#parts;
    const { object: { storePathHash } } = dice.pick(objects);
    if (action === "other limit") {
      const limitBytes = dice.pick([Infinity, 2, 3, 5]) * objectBytesMax;
      return await restartAll(limitBytes) ? String(limitBytes) : "a member is down";
    }
    const larder = member();
    if (larder === undefined) return "nobody is there";
    if (action === "gc") {
      return await larder.operate("POST", `/gc?target=${dice.below(3 * objectBytesMax)}`);
    }
    const row = await metadata.findNarinfo(storePathHash);
    if (row === undefined) return "nothing to delete";
    // Pins reach nothing through a narinfo that is gone, until it is stored again.
    this.#held.clear();
    return await larder.operate(
      "DELETE",
      action === "delete nar" ? `/nar/${row.narName}` : `/${storePathHash}.narinfo`,
    );
  }
}
