import type { NarName } from "../nix/nar_name.ts";
import { narNameOf } from "../nix/stored_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Change } from "./metadata_store.ts";

/** The keys of rows that another process wrote or removed. */
export interface ChangedKeys {
  readonly storePaths: readonly StorePathHash[];
  readonly nars: readonly NarName[];
}

/** "all": each row may have changed. */
export type Changed = ChangedKeys | "all";

/** The narinfos that these changes write, and the NARs that they keep. */
export function arrivalsOf(changes: readonly Change[]): ChangedKeys {
  return {
    storePaths: changes.flatMap((change) =>
      change.kind === "put-narinfo" ? [change.row.storePathHash] : []
    ),
    nars: changes.flatMap((change) =>
      change.kind === "nar-kept" ? [narNameOf(change.file.at)] : []
    ),
  };
}

/** Reports the changes of other processes to the same database. */
export interface ChangeFeed {
  /**
   * Calls `on` within two seconds after a write of another process, until the result is disposed.
   * Several writes may share one call; writes of this process cause none. Without access to the
   * database there are no calls; the next one covers all missed writes. An error of `on` is an
   * uncaught error of the process, and the other subscribers get their calls.
   */
  subscribe(on: (changed: Changed) => void): AsyncDisposable;
}

/** The subscribers of a feed. */
export class Subscribers {
  readonly #all = new Set<{ readonly on: (changed: Changed) => void }>();

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** `over`: called after the end of the subscription. */
  add(on: (changed: Changed) => void, over: () => void = () => {}): AsyncDisposable {
    const subscriber = { on };
    this.#all.add(subscriber);
    return {
      [Symbol.asyncDispose]: async () => {
        this.#all.delete(subscriber);
        over();
      },
    };
  }

  report(changed: Changed): void {
    for (const { on } of this.#all) {
      try {
        on(changed);
      } catch (error) {
        reportError(error);
      }
    }
  }
}
