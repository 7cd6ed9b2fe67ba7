import type { MemberId } from "../base/member_id.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { StoredName } from "../nix/stored_name.ts";

/** Empty narinfos that one batch evicts, as a share of its entries. */
export const EMPTIES_SHARE = 1 / 4;

/** Evicted narinfos whose time stays: less than 1 MB. */
export const EVICTED_PATHS_MAX = 10_000;

/** Sums over all NAR files, as of one moment. */
export interface Stock {
  readonly keptBytes: number;
  readonly keptFiles: number;
  /** Bytes of objects that are marked for removal and may still exist. */
  readonly pendingBytes: number;
  /** The part of `keptBytes` that a pin protects; a shared NAR file counts once. */
  readonly protectedBytes: number;
  /** Bytes that members have reserved for files in flight. */
  readonly reservedBytes: number;
}

/** An entry that may be evicted: a narinfo with its NAR file, or a NAR file without a narinfo. */
export interface ColdEntry {
  /** `undefined` for a NAR file without a narinfo. */
  readonly storePathHash?: StorePathHash;
  readonly narName: NarName;
  /** Bytes of its NAR file. */
  readonly keptBytes: number;
  /** How many narinfos name that file. */
  readonly sharers: number;
  readonly usedAtMs: number;
  /** The place in the order of eviction: `coldest` continues after it. Opaque to callers. */
  readonly cursor: string;
}

/** A stored object that is being published or removed. */
export interface PendingFile {
  readonly at: StoredName;
  /** The process that publishes or removes it; NOBODY once it was taken from a dead one. */
  readonly owner: string;
  /** The bytes that count until it is removed; 0 while it is being published. */
  readonly fileSize: number;
}

export interface EvictionOrder {
  /** The target for the sum of the files to remove. */
  readonly bytesMin: number;
  /** The most entries in one transaction: it stops the thread. */
  readonly entriesMax: number;
  /** NAR files that are read or downloaded: they stay, with their narinfos. */
  readonly spared: ReadonlySet<NarName>;
  /** Entries used at this time or later stay; default: none does. */
  readonly usedBeforeMs?: number;
  /** The process that removes the files. */
  readonly owner: string;
  /** The time of the eviction, to be remembered; default: nothing is. */
  readonly atMs?: number;
}

export interface ExpiryOrder {
  /** Times up to this one are over. */
  readonly atMs: number;
  /** NAR files that stay: a narinfo may be about to name them. */
  readonly spared: ReadonlySet<NarName>;
  /** The process that removes the files. */
  readonly owner: string;
}

export interface Evicted {
  /** Narinfos whose rows were removed. */
  readonly narinfos: readonly StorePathHash[];
  /** Marked files: remove each from the storage, then report it by `nar-gone`. */
  readonly files: readonly PendingFile[];
  /** Evicted entries: narinfos with a NAR file, and NAR files without a narinfo. */
  readonly entries: number;
  /** False when nothing was evicted because the protection is unknown: call `protect` first. */
  readonly settled: boolean;
}

/** The sums over all kept files. */
interface StockKeeper {
  /** `reservedBytes` leaves out those of `except`. */
  stock(except?: MemberId): Promise<Stock>;

  /** Counts all rows by a scan; true when the sums agree. */
  areSumsRight(): Promise<boolean>;

  /** Counts all rows by a scan, and corrects the sums. True when they were right. */
  recount(): Promise<boolean>;
}

/** The entries that may be evicted, and the pending objects. */
export interface SpaceKeeper extends StockKeeper {
  /** The coldest entries that no pin protects, the coldest first; those after a cursor if given. */
  coldest(countMax: number, after?: string): Promise<readonly ColdEntry[]>;

  /**
   * Evicts the coldest unprotected entries, in one transaction. A narinfo goes even if its NAR file
   * is shared; the last narinfo that names the file marks it. Some colder narinfos without a NAR
   * file go too.
   */
  evict(order: EvictionOrder): Promise<Evicted>;

  /**
   * Continues the walk over the pins' closures by at most `pathsMax` paths. Resolves to true while
   * more are left; until then too much is protected, never too little.
   */
  protect(pathsMax: number): Promise<boolean>;

  /** Marks the kept files of staged NARs whose time is over, of all processes. */
  expireNars(order: ExpiryOrder): Promise<readonly PendingFile[]>;

  /** Every pending object, of all processes. */
  pendingFiles(): Promise<readonly PendingFile[]>;
}

/** A process that shares the storage. */
export interface Member {
  readonly id: MemberId;
  /** The time from its last heartbeat to the last one of the member that asks. */
  readonly silentMs: number;
  /** Where the other members reach it; `undefined`: nowhere. */
  readonly url?: string;
}

export interface ReserveOrder {
  /** All bytes that the member needs, those that it has reserved included. */
  readonly neededBytes: number;
  /** Reserve this many if they fit, so that the next call comes later. */
  readonly wantedBytes: number;
  /** Limit of stored and reserved bytes together. */
  readonly limitBytes: number;
}

/** The reserved bytes of a member, and its limit for stored and reserved bytes together. */
export interface HeartbeatOrder {
  readonly reservedBytes: number;
  readonly limitBytes: number;
  /** Where the other members reach it; `undefined`: nowhere. */
  readonly url?: string | undefined;
}

/**
 * The reserved bytes of all members. Stored plus reserved bytes exceed no member's limit by its
 * own call, whatever other members do at the same time. Kept files leave the reserved bytes in the
 * transaction of their row (`nar-kept`).
 */
export interface SpaceLedger {
  /**
   * Raises the member's reserved bytes to `neededBytes` at least, in one transaction. Resolves to
   * its reserved bytes. `undefined`, without a change: they do not fit, or no such member is there.
   */
  reserve(member: MemberId, order: ReserveOrder): Promise<number | undefined>;

  /**
   * Writes a heartbeat, and sets the member's reserved bytes to those of `order`. Adds an absent
   * member. Bytes that are more than before, and do not fit, stay unreserved. Resolves to the
   * member's reserved bytes.
   */
  beat(member: MemberId, order: HeartbeatOrder): Promise<number>;

  /**
   * All members. The last heartbeat of `observer` measures their silence, not the clock: a locked
   * database, a suspended machine or a clock that jumps silences nobody.
   */
  members(observer: MemberId): Promise<readonly Member[]>;

  /** Removes a member, and gives back its reserved bytes. */
  leave(member: MemberId): Promise<void>;
}

/** The bytes of a database. */
export interface DatabaseSize {
  readonly bytes: number;
  /** The part that takes room from the NAR files below the size limit. */
  readonly countedBytes: number;
}

/** Tells the size of its own rows. */
export interface DatabaseMeter {
  /** Cheap enough for each look at the stored bytes; some seconds old at most. */
  databaseSize(): Promise<DatabaseSize>;
}

/** Bytes of a database that do not count: some ten thousand narinfos. */
export const UNCOUNTED_BYTES = 16 << 20;

/** The part of the size limit above which rows without NAR files go before their time. */
export const DATABASE_SHARE = 1 / 10;
