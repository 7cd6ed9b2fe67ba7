import { Failure } from "../base/failure.ts";
import type { Compression } from "../nix/compression.ts";
import type { FileHash, NarHash, Sha256 } from "../nix/hash.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { OwnSignature } from "../nix/sign_narinfo.ts";
import type { Seal, StoredName } from "../nix/stored_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { DatabaseMeter } from "./database_size.ts";
import type { DocumentChange, DocumentKeeper } from "./document_keeper.ts";
import type { FormerNameKeeper } from "./former_name_keeper.ts";
import type { GraphFinder } from "./graph_finder.ts";
import type { HistoryKeeper } from "./history_keeper.ts";
import type { PullKeeper } from "./pull_keeper.ts";
import type { NameFinder } from "./name_finder.ts";
import type { PinLook, PinNoter } from "./pin_look.ts";
import type { RowSweeper } from "./row_sweeper.ts";
import type { SignedPathChange, SignedPathFinder } from "./signed_path_keeper.ts";
import type { SpaceKeeper } from "./space_keeper.ts";
import type { SpaceLedger } from "./space_ledger.ts";

/** A stored narinfo. */
export interface NarinfoRow {
  readonly storePathHash: StorePathHash;
  /** The served text without our own signature. */
  readonly body: string;
  readonly narName: NarName;
  /** True when a trusted key signed it: only then may we sign too. */
  readonly trusted: boolean;
  readonly ownSignature?: OwnSignature;
}

/** The facts of a NAR file, kept or not. */
export interface NarRow {
  readonly name: NarName;
  readonly compression: Compression;
  readonly narHash: NarHash;
  readonly narSize: number;
  /** File hash from the narinfo, unsigned. */
  readonly fileHash?: FileHash;
  readonly fileSize?: number;
  /**
   * When an upstream's narinfo last named the file. 0 after its kept file was lost: nobody has
   * looked since. `undefined` if no upstream ever did, as for an upload. No claim.
   */
  readonly seenAtMs?: number;
}

/** A kept NAR file, as measured when it was stored. */
export interface KeptFile {
  /** The stored object that holds it. */
  readonly at: StoredName;
  /** `undefined` for a file that others could change unseen when larder stored it. */
  readonly seal?: Seal;
  readonly fileHash: Sha256;
  readonly fileSize: number;
  /** `undefined` for a file that an older larder stored. */
  readonly keptAtMs?: number;
  /** Its compression, where larder has recompressed it; `undefined`: that of its name. */
  readonly form?: "zstd";
}

export interface NarRecord extends NarRow {
  readonly kept?: KeptFile;
  /** When a client last got only a part of the form that the name says: it may come back. */
  readonly brokenAtMs?: number;
}

/** The location of a NAR file at an upstream: its path and query, opaque to us. */
export interface NarSource {
  /** The upstream's URL, without credentials. */
  readonly upstream: string;
  /** Relative to that URL, as in the upstream's narinfo. */
  readonly location: string;
}

/** A store path that an operator asked to keep, with its closure. */
export interface PinRoot {
  readonly storePathHash: StorePathHash;
  readonly pinnedAtMs: number;
  /** Set where larder fetches what is missing of the closure. */
  readonly keepComplete?: true;
  /** The last look at the closure; `undefined`: nobody has looked yet. */
  readonly look?: PinLook;
  /** The names that hold it, in alphabetical order; `undefined`: none. */
  readonly names?: readonly string[];
  /** True: names alone hold it, and it goes with the last of them. */
  readonly rolls?: true;
}

/** A root that a name holds. */
export interface NamedPin {
  readonly name: string;
  readonly storePathHash: StorePathHash;
  /** When it was last pinned under the name. */
  readonly pinnedAtMs: number;
  /** The number of roots that the name keeps, as it was last given. */
  readonly keep: number;
}

/** The NAR name belongs to another NAR, or to a file of other hash or size. */
export class NarNameTaken extends Failure {
  constructor(narName: NarName) {
    super("corrupt", "Cannot put narinfo: its NAR name stands for another file", { nar: narName });
  }
}

/**
 * True where a narinfo agrees with the row about its NAR file. File hash and size are unsigned, so
 * narinfos that differ in them never share a row. Uncompressed, both are signed.
 */
export function isSameClaim(known: NarRow, claimed: NarRow): boolean {
  if (known.narHash !== claimed.narHash || known.narSize !== claimed.narSize) return false;
  if (known.compression !== claimed.compression) return false;
  if (known.compression === "none") return true;
  return known.fileHash === claimed.fileHash && known.fileSize === claimed.fileSize;
}

/** Another process settles the intent or has settled it: its object must not be kept. */
export class IntentLost extends Failure {
  constructor(at: StoredName) {
    super("broken", "Cannot keep NAR file: its intent is gone", { nar: at });
  }
}

/** The object that another one should replace is no longer kept, or somebody may need the rest. */
export class Irreplaceable extends Failure {
  constructor(at: StoredName) {
    super("overloaded", "Cannot replace NAR file: it has changed, or a client may need the rest", {
      nar: at,
    });
  }
}

/** The narinfo or the NAR has changed since its writer read it: read both again. */
export class Outdated extends Failure {
  constructor(storePathHash: StorePathHash) {
    super("overloaded", "Cannot put narinfo: another one came first", { path: storePathHash });
  }
}

/** Preconditions of a put-narinfo. */
export interface NarinfoCondition {
  /** The stored narinfo's text; `undefined`: there is none. */
  readonly body: string | undefined;
  /** The kept object of its NAR. */
  readonly at: StoredName;
}

/** Preconditions of a nar-kept in another form. */
export interface ReplaceCondition {
  /** The object that is kept until now. */
  readonly at: StoredName;
  /** No client has got only a part of it since then. */
  readonly quietSinceMs: number;
}

/** The member has reserved less than the file takes, as after its death was declared. */
export class ReservationLost extends Failure {
  constructor(at: StoredName) {
    super("broken", "Cannot keep NAR file: its reservation is gone", { nar: at });
  }
}

/** True for a write that the rows forbid: the database has answered. */
export function isRefusal(error: unknown): boolean {
  return [NarNameTaken, IntentLost, Irreplaceable, Outdated, ReservationLost]
    .some((refusal) => error instanceof refusal);
}

export function closedFailure(): Failure {
  return new Failure("broken", "Cannot use metadata: the database is closed");
}

/** The use of a row that no client has requested yet: colder than every other. */
export const NEVER_USED_AT_MS = 0;

/** One write. The store applies a list of them whole, or not at all. */
export type Change =
  /**
   * Refused where the NAR's row has another NAR hash, file hash or file size. A client may hold a
   * narinfo that agrees with the row, so the row stays.
   */
  | {
    readonly kind: "put-narinfo";
    readonly row: NarinfoRow;
    readonly references: readonly StorePathHash[];
    readonly nar: NarRow;
    readonly sources: readonly NarSource[];
    /** Its first use, or NEVER_USED_AT_MS. An earlier row's later use stays. */
    readonly atMs: number;
    /** Refused with Outdated where it does not hold. */
    readonly onlyIf?: NarinfoCondition;
    /** True: refused with Outdated where the NAR of the path's narinfo is kept. */
    readonly unlessKept?: boolean;
  }
  | { readonly kind: "put-source"; readonly narName: NarName; readonly source: NarSource }
  | { readonly kind: "remove-narinfo"; readonly storePathHash: StorePathHash }
  /** With its sources. Ignored where a narinfo names the NAR, or an object of it is left. */
  | { readonly kind: "remove-nar"; readonly narName: NarName }
  /**
   * Adds the NAR of an upload before its narinfo. Its kept file stays until `untilMs`. Without
   * effect where a narinfo names it; refused like a put-narinfo where the row has other facts.
   */
  | { readonly kind: "stage-nar"; readonly nar: NarRow; readonly untilMs: number }
  /**
   * The intent to publish, before the object exists: a later start finds the remains of a crash.
   */
  | { readonly kind: "nar-publishing"; readonly at: StoredName; readonly owner: string }
  /**
   * Makes the object the NAR's kept file and ends its intent. Refused with IntentLost without an
   * intent of this owner. The object that it replaces is marked, for the same owner to remove.
   *
   * `reservedBytes`, the file's size at least, leave the owner's reserved bytes: the file counts as
   * stored from now on. Refused with ReservationLost where the owner has fewer.
   */
  | {
    readonly kind: "nar-kept";
    readonly file: KeptFile;
    readonly owner: string;
    readonly atMs: number;
    readonly reservedBytes?: number;
    /** Refused with Irreplaceable where it does not hold. */
    readonly replaces?: ReplaceCondition;
  }
  /** A client got only a part of the NAR file, in the form of its name. */
  | { readonly kind: "nar-broken"; readonly at: StoredName; readonly atMs: number }
  /** The object's current bytes are verified. Ignored where another object is kept. */
  | { readonly kind: "nar-sealed"; readonly at: StoredName; readonly seal: Seal }
  /**
   * Marks the object: it counts until `nar-gone`. Ignored where another one is kept. `isLost`: it
   * is missing or damaged, so that upstreams must be asked for the NAR's narinfos again.
   */
  | {
    readonly kind: "nar-marked";
    readonly at: StoredName;
    readonly owner: string;
    readonly isLost?: boolean;
  }
  /**
   * Takes a pending object from its dead owner. NOBODY owns it then, and a `nar-kept` of the former
   * owner is refused. Refused with IntentLost where the object is not pending.
   */
  | { readonly kind: "nar-taken"; readonly at: StoredName }
  /** An object that is not kept could not be removed: it counts until `nar-gone`. */
  | {
    readonly kind: "nar-stuck";
    readonly at: StoredName;
    readonly owner: string;
    readonly fileSize: number;
  }
  /** A pending object no longer exists. */
  | { readonly kind: "nar-gone"; readonly at: StoredName }
  | {
    readonly kind: "touch-narinfo";
    readonly storePathHash: StorePathHash;
    readonly atMs: number;
  }
  | { readonly kind: "touch-nar"; readonly narName: NarName; readonly atMs: number }
  /**
   * Ignored where the root is pinned already; one that rolls stays then without a name. `names` and
   * notes play no part: `notePin` writes these.
   */
  | { readonly kind: "put-pin"; readonly pin: PinRoot }
  /** Unpins the root, whatever holds it: its names lose it too. */
  | { readonly kind: "remove-pin"; readonly storePathHash: StorePathHash }
  /**
   * Pins the root as the newest one under the name. The name gives up all but its newest `keep`
   * roots. A root that nothing else holds is unpinned then.
   */
  | ({ readonly kind: "roll-pin" } & NamedPin)
  /** The name gives up all its roots. */
  | { readonly kind: "unpin-name"; readonly name: string }
  | SignedPathChange
  | DocumentChange;

/** The changes of one kind, or of several. */
export type ChangeOf<Kind extends Change["kind"]> = Extract<Change, { kind: Kind }>;

export interface NarinfoFinder {
  findNarinfo(storePathHash: StorePathHash): Promise<NarinfoRow | undefined>;
  /**
   * `undefined` where others can read all writes of the narinfo. Else it resolves when they can, or
   * after `limitMs`.
   */
  narinfoLanded?(storePathHash: StorePathHash, limitMs: number): Promise<void> | undefined;
}

export interface FindOptions {
  /** True: reads the database, not memory, to see the latest writes of other processes. */
  readonly fresh?: boolean;
}

export interface NarFinder {
  findNar(narName: NarName, options?: FindOptions): Promise<NarRecord | undefined>;
  /** Sources of a NAR: at most one for each upstream, in any order; empty for an unknown NAR. */
  sourcesOf(narName: NarName): Promise<readonly NarSource[]>;
  /** The store paths whose narinfo names this NAR file. */
  narinfosOf(narName: NarName): Promise<readonly StorePathHash[]>;
}

/** A kept NAR file, as its row describes it. */
export interface KeptNar extends KeptFile {
  readonly name: NarName;
}

export interface KeptLister {
  /** The kept files whose name begins with `prefix`, in the order of names. */
  keptNars(prefix: string): Promise<readonly KeptNar[]>;
}

/** A kept NAR whose narinfo a client has used. */
export interface UsedNar {
  readonly narName: NarName;
  readonly usedAtMs: number;
  readonly fileSize: number;
  readonly form?: "zstd";
  readonly brokenAtMs?: number;
  /** Continues the list behind it. */
  readonly cursor: UseCursor;
}

export interface UseCursor {
  readonly usedAtMs: number;
  readonly id: number;
}

/** Before every use. */
export const NEWEST_USE: UseCursor = { usedAtMs: Number.MAX_SAFE_INTEGER, id: 0 };

export interface UsedNarLister {
  /**
   * Kept NARs by the last use of their narinfos, the newest first. A NAR of several narinfos comes
   * several times.
   */
  usedNars(countMax: number, after?: UseCursor): Promise<readonly UsedNar[]>;
}

/** Checks the store itself, not its rows. */
export interface DamageFinder {
  /** One line for each fault, such as a corrupt page. Reads the whole store. */
  damage(): Promise<readonly string[]>;
}

export interface ReferenceFinder {
  /** All references, with or without stored narinfos; empty for a path that is not stored. */
  referencesOf(storePathHash: StorePathHash): Promise<readonly StorePathHash[]>;
}

/** Times of a store path's last use and eviction. */
export interface PathTimes {
  /** `undefined` without a narinfo, or without a use. */
  readonly usedAtMs?: number;
  /** `undefined` if it is not among the newest EVICTED_PATHS_MAX. */
  readonly evictedAtMs?: number;
}

export interface PathTimesFinder {
  pathTimes(storePathHash: StorePathHash): Promise<PathTimes>;
}

export interface WriteOptions {
  /** True: waits as long as another process locks the database, instead of some seconds. */
  readonly mustWait?: boolean;
}

export interface ChangeWriter {
  /**
   * Resolves when all changes are written; rejects when none is. NarNameTaken: the NAR name of a
   * put-narinfo is another file's. The store applies lists that share a key (a store path, a NAR or
   * a document) in the order of the calls; others may overtake. A use may be late: it only ever
   * raises a time.
   */
  apply(changes: readonly Change[], options?: WriteOptions): Promise<void>;
}

export interface PinFinder {
  findPin(storePathHash: StorePathHash): Promise<PinRoot | undefined>;
  /** Pin roots in the order of pinning. */
  pins(): Promise<readonly PinRoot[]>;
}

export interface PinNameFinder {
  /** The roots that names hold, by name, then in the order of pinning. */
  namedPins(): Promise<readonly NamedPin[]>;
}

export type MetadataStore =
  & NarinfoFinder
  & NarFinder
  & KeptLister
  & UsedNarLister
  & ReferenceFinder
  & PathTimesFinder
  & SignedPathFinder
  & DatabaseMeter
  & GraphFinder
  & NameFinder
  & ChangeWriter
  & PinFinder
  & PinNameFinder
  & PinNoter
  & SpaceKeeper
  & SpaceLedger
  & RowSweeper
  & DocumentKeeper
  & FormerNameKeeper
  & HistoryKeeper
  & PullKeeper;
