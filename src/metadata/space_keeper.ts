import type { NarName } from "../nix/nar_name.ts";
import type { StoredName } from "../nix/stored_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";

/** Sums over everything that is kept. */
export interface Stock {
  readonly keptBytes: number;
  readonly keptFiles: number;
  /** Bytes of objects that are marked for removal and not known to be gone. */
  readonly pendingBytes: number;
  /** Those of `keptBytes` that a pin protects; a shared NAR file counts once. */
  readonly protectedBytes: number;
}

/** What may be evicted: a narinfo with its NAR file, or a NAR file that no narinfo names. */
export interface ColdEntry {
  /** `undefined` where no narinfo names the file. */
  readonly storePathHash?: StorePathHash;
  readonly narName: NarName;
  /** Bytes of its NAR file. */
  readonly keptBytes: number;
  /** How many narinfos lead to that file. */
  readonly sharers: number;
  readonly usedAtMs: number;
  /** The row's id: entries of one millisecond have an order too. */
  readonly id: number;
}

/** A stored object on its way in or out. */
export interface PendingFile {
  readonly at: StoredName;
  /** The process that it belongs to. */
  readonly owner: string;
  /** What it counts until it is gone; 0 for one on its way in. */
  readonly fileSize: number;
}

export interface EvictionOrder {
  /** Enough is evicted when the files to remove hold so much. */
  readonly bytesMin: number;
  /** At most so many entries in one transaction: it stops the thread. */
  readonly entriesMax: number;
  /** NAR files that are being read or downloaded: they stay, with their narinfos. */
  readonly spared: ReadonlySet<NarName>;
  /** Who removes the files. */
  readonly owner: string;
}

export interface Evicted {
  /** Their rows are gone. */
  readonly narinfos: readonly StorePathHash[];
  /** Marked: to be removed from the store, and then reported by `nar-gone`. */
  readonly files: readonly PendingFile[];
  /** Entries that went: narinfos with a NAR file, and NAR files without a narinfo. */
  readonly entries: number;
  /** False when nothing was tried: what is protected is not known yet, `protect` first. */
  readonly settled: boolean;
}

/** Knows how much is kept. */
export interface StockKeeper {
  stock(): Promise<Stock>;

  /** Counts everything, by a scan, and compares the sums with it. */
  areSumsRight(): Promise<boolean>;

  /** The same, and corrects the sums. True when they were right. */
  recount(): Promise<boolean>;
}

/** Knows what may go, too. */
export interface SpaceKeeper extends StockKeeper {
  /** What no pin protects, the one that was used longest ago first; behind `after` if given. */
  coldest(countMax: number, after?: ColdEntry): Promise<readonly ColdEntry[]>;

  /**
   * Removes the coldest entries that nothing protects, in one transaction. A narinfo goes whether
   * its NAR file is shared or not; the file is marked with the last narinfo that leads to it.
   * Some narinfos without a NAR file that were used even longer ago go along.
   */
  evict(order: EvictionOrder): Promise<Evicted>;

  /**
   * Walks on along the references of what is pinned, by at most `pathsMax` paths. Resolves to
   * true while there is more to do; until then too much is protected, never too little.
   */
  protect(pathsMax: number): Promise<boolean>;

  /** Every object on its way in or out, of whichever process. */
  pendingFiles(): Promise<readonly PendingFile[]>;
}
