import type { StorePathHash } from "../nix/store_path.ts";

/** More lost files are a disk that is away: their bytes still count as here. */
export const LOST_MAX = 1_000;

/** What larder found when it last looked at every path of a pinned closure. */
export interface PinLook {
  readonly atMs: number;
  /** The known paths of the closure. */
  readonly paths: number;
  /** Those whose NAR file is not here, or is damaged. 0: the closure is complete. */
  readonly missing: number;
  /** Missing ones of which an upstream still has the narinfo. */
  readonly upstream: number;
  /** Missing ones that no upstream has. */
  readonly nowhere: number;
  /** Missing ones that larder had no time to ask for. Of all others, an upstream could not tell. */
  readonly unasked?: number;
  /** Names of the first missing paths, or their hashes. */
  readonly examples: readonly string[];
  /** Missing paths by the rows alone, at that time: another count now means another look. */
  readonly uncounted: number;
  /** The first LOST_MAX of the others: by their rows, their files are kept. Default: none. */
  readonly lost?: readonly StorePathHash[];
  /** The last look that found the closure complete; `undefined`: none did. */
  readonly completeAtMs?: number;
}

/** What is noted about a pin; what is `undefined` stays. */
export interface PinNote {
  readonly keepComplete?: boolean;
  readonly look?: PinLook;
}

export interface PinNoter {
  /** Does nothing without a pin of this root. A pin's notes go with it. */
  notePin(storePathHash: StorePathHash, note: PinNote): Promise<void>;
}
