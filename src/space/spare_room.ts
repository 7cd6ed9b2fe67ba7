import type { ColdEntry, SpaceKeeper } from "../metadata/space_keeper.ts";
import type { ActiveReads } from "./active_reads.ts";

/** A prefetch that needs room evicts no entry that was used within this time. */
const SPARED_MS = 60 * 60 * 1_000;

/** The entries that may make room for one small file. */
const ENTRIES_MAX = 32;

export interface SpareRoomDeps {
  readonly metadata: Pick<SpaceKeeper, "coldest">;
  readonly reads: Pick<ActiveReads, "names">;
  /** Writes the uses that wait. */
  readonly flushTouches: () => Promise<void>;
  readonly nowMs: () => number;
}

/** The entries that a prefetch may evict. */
export class SpareRoom {
  readonly #deps: SpareRoomDeps;

  constructor(deps: SpareRoomDeps) {
    this.#deps = deps;
  }

  /** Entries that were used later stay. */
  usedBeforeMs(): number {
    return this.#deps.nowMs() - SPARED_MS;
  }

  /** The bytes of the coldest entries that may go; there may be more. */
  async bytes(): Promise<number> {
    const { metadata, reads, flushTouches } = this.#deps;
    await flushTouches();
    const spared = reads.names();
    const beforeMs = this.usedBeforeMs();
    const cold = (await metadata.coldest(ENTRIES_MAX))
      .filter(({ usedAtMs, narName }) => usedAtMs < beforeMs && !spared.has(narName));
    return cold.reduce((sum, entry) => sum + ownBytes(entry), 0);
  }
}

/** A shared file goes with the last of its narinfos. */
function ownBytes({ keptBytes, sharers }: ColdEntry): number {
  return sharers > 1 ? 0 : keptBytes;
}
