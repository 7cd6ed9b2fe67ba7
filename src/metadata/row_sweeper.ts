import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";

/**
 * How long a NAR's row outlives its swept narinfo. A client that received the narinfo just before
 * still finds its NAR, from any process.
 */
export const NAR_GRACE_MS = 24 * 3_600_000;

/** Paths that one batch reads for each row that it may remove: most of them stay. */
export const PATHS_PER_ROW = 8;

export interface RowSweepOrder {
  /** Rows with a later use stay. */
  readonly unusedSinceMs: number;
  /** The most rows of a kind in one transaction: it stops the thread. */
  readonly rowsMax: number;
  /** NAR files that are read or downloaded: their rows stay. */
  readonly spared: ReadonlySet<NarName>;
  /** `next` of the last batch; without it the sweep begins. */
  readonly after?: string;
}

export interface SweptRows {
  /** Removed narinfos, with their references and last uses. */
  readonly narinfos: readonly StorePathHash[];
  /** Removed NARs, with their sources. */
  readonly nars: readonly NarName[];
  /** The count of removed store paths that nothing named any more. */
  readonly paths: number;
  /** Absent when the sweep is over. */
  readonly next?: string;
  /** False when nothing was removed because the protection is unknown: call `protect` first. */
  readonly settled: boolean;
}

/** Removes unused rows, so that the database stays small. */
export interface RowSweeper {
  /**
   * Removes one batch of unused rows, in one transaction. Protected rows, kept NAR files and their
   * narinfos stay, however old their last use is.
   */
  sweepRows(order: RowSweepOrder): Promise<SweptRows>;
}
