import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";

/** Rows that another process wrote or removed. */
export interface ChangedKeys {
  readonly storePaths: readonly StorePathHash[];
  readonly nars: readonly NarName[];
}

/** "all": any row may have changed. */
export type Changed = ChangedKeys | "all";

/** Tells what other processes change in the same database. */
export interface ChangeFeed {
  /**
   * Calls `on` within two seconds after another process has written, until the result is disposed
   * of. Several writes may be one notice; writes of this process are none. Without access to the
   * database there are no notices; the first one after that tells of all that was missed.
   */
  subscribe(on: (changed: Changed) => void): AsyncDisposable;
}
