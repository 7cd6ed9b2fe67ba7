import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";

/**
 * A NAR's row outlives its swept narinfo by so long. A client that was served the narinfo just
 * before still finds its NAR, also where another process served it.
 */
export const NAR_GRACE_MS = 24 * 3_600_000;

export interface RowSweepOrder {
  /** Rows that somebody asked for later than this stay. */
  readonly unusedSinceMs: number;
  /** At most so many rows of a kind in one transaction: it stops the thread. */
  readonly rowsMax: number;
  /** NAR files that are being read or downloaded: their rows stay. */
  readonly spared: ReadonlySet<NarName>;
  /** `next` of the batch before; without it the sweep begins. */
  readonly after?: string;
}

export interface SweptRows {
  /** Narinfos that went, with their references and last uses. */
  readonly narinfos: readonly StorePathHash[];
  /** NARs that went, with their sources. */
  readonly nars: readonly NarName[];
  /** How many store paths went that nothing named any more. */
  readonly paths: number;
  /** Absent when the sweep is over. */
  readonly next?: string;
  /** False when nothing was tried: what is protected is not known yet, `protect` first. */
  readonly settled: boolean;
}

/** Removes rows that nobody asked for, so that the database does not grow for ever. */
export interface RowSweeper {
  /**
   * Removes one batch of unused rows, in one transaction. What a pin protects, a kept NAR file
   * and its narinfos stay, however old their last use is.
   */
  sweepRows(order: RowSweepOrder): Promise<SweptRows>;
}
