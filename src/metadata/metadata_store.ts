import type { Bytes } from "../base/bytes.ts";
import { Failure } from "../base/failure.ts";
import type { StorageId } from "../base/storage_id.ts";
import type { Compression } from "../nix/compression.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import type { FileHash, NarHash, Sha256 } from "../nix/hash.ts";
import type { NarName, NarStem } from "../nix/nar_name.ts";
import type { OwnSignature } from "../nix/sign_narinfo.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Seal, StoredName } from "../nix/stored_name.ts";
import type { HistoryKeeper, PullKeeper } from "./history_keeper.ts";
import type { DatabaseMeter, SpaceKeeper, SpaceLedger } from "./space_keeper.ts";

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
  /** The `keptAtMs` of the file that larder has made it of. The store finds it itself. */
  readonly cameAtMs?: number;
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

interface PathTimesFinder {
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

/** The signed facts of a path that larder has signed, kept longer than its narinfo. */
export interface SignedPath {
  /** SHA-256 of the fingerprint. */
  readonly digest: Sha256;
  /** True where no upstream has signed the path, only an uploader's token vouches for it. */
  readonly isUploaded: boolean;
}

/** The rows of both kinds. */
export interface SignedPathCounts {
  readonly uploaded: number;
  readonly upstream: number;
}

/** A change of the memory of signed paths. Nothing evicts from it. */
export type SignedPathChange =
  /**
   * Remembers the signed facts. A kind that has `countMax` rows takes no further path; one that is
   * there gets the new facts.
   */
  | (SignedPath & {
    readonly kind: "put-signed";
    readonly storePathHash: StorePathHash;
    readonly countMax: number;
    /** True: refused with Outdated where larder has signed other facts of the path. */
    readonly unlessOther?: boolean;
  })
  /** An operator removed the path: the next upload may have other facts. */
  | { readonly kind: "forget-signed"; readonly storePathHash: StorePathHash };

/** The memory of the paths that larder has signed. */
export interface SignedPathFinder {
  /** `undefined`: larder has never signed the path, or had no room for its facts. */
  findSigned(storePathHash: StorePathHash): Promise<SignedPath | undefined>;
  signedCounts(): Promise<SignedPathCounts>;
}

/** Bytes of a row with its index, as a rule of thumb. */
const ROW_BYTES = 128;

/** Limit of remembered paths of each kind, in a cache of any size: some 1 MB. */
const COUNT_MIN = 10_000;

/** Some 128 MB of each kind. */
const COUNT_MAX = 1_000_000;

/** The part of the size limit that each kind may take. */
const LIMIT_SHARE = 1 / 20;

/** The most rows of a kind, for a limit of the NAR files. */
export function signedPathsMax(limitBytes: number): number {
  const share = Math.floor(limitBytes * LIMIT_SHARE / ROW_BYTES);
  return Math.min(COUNT_MAX, Math.max(COUNT_MIN, share));
}

/** Documents that one new document may replace: some milliseconds in one transaction. */
export const DOCUMENTS_GOING_MAX = 128;

/** A document without its bytes. */
export interface DocumentFacts {
  readonly path: DocumentPath;
  /** The URL of the upstream that it is from, without credentials. */
  readonly upstream: string;
  /** The content type: of its kind, or the upstream's. */
  readonly type: string;
  /** The Content-Encoding of the bytes. */
  readonly encoding?: string;
  /** An entity tag of these very bytes. */
  readonly tag: string;
  readonly bodyBytes: number;
  /** True where larder requests it from the upstream again from time to time. */
  readonly mayChange: boolean;
  /** The NAR that a debuginfo document names. */
  readonly narName?: NarName;
}

/** A stored document; read its bytes piece by piece. */
export interface DocumentRow extends DocumentFacts {
  /** Never reused, not even for the same path. */
  readonly id: number;
  /** Time of the last confirmation by an upstream. */
  readonly checkedAtMs: number;
}

export type DocumentChange =
  /**
   * Replaces the document of the same path. The coldest documents go until the sum is within
   * `totalBytesMax`. If too many would go at once, the new one is not stored.
   */
  | {
    readonly kind: "put-document";
    readonly document: DocumentFacts;
    /** All bytes, in order. */
    readonly pieces: readonly Uint8Array[];
    readonly totalBytesMax: number;
    readonly atMs: number;
  }
  /** An upstream confirmed that the document is unchanged. */
  | { readonly kind: "check-document"; readonly path: DocumentPath; readonly atMs: number }
  | { readonly kind: "touch-document"; readonly path: DocumentPath; readonly atMs: number }
  | { readonly kind: "remove-document"; readonly path: DocumentPath };

/** Stores the documents of a binary cache, other than narinfos and NARs. */
export interface DocumentKeeper {
  findDocument(path: DocumentPath): Promise<DocumentRow | undefined>;
  /** `undefined` after the last piece, and for a document that was removed or replaced. */
  documentPiece(id: number, number: number): Promise<Bytes | undefined>;
  /** The sum of all stored documents, in bytes. */
  documentBytes(): Promise<number>;
  /** The sources of a NAR by debuginfo documents: at most one for each upstream. */
  debuginfoSourcesOf(narName: NarName): Promise<readonly NarSource[]>;
}

/** A stored store path, as a walk along references needs it. */
export interface GraphRow {
  readonly storePathHash: StorePathHash;
  readonly narName: NarName;
  /** The size of the kept NAR file; `undefined`: it is not kept. */
  readonly keptBytes: number | undefined;
  /** All of them, with or without stored narinfos. */
  readonly references: readonly StorePathHash[];
}

/**
 * Reads many store paths at once: one query where the database is elsewhere. Throws the reason of a
 * signal that fires.
 */
export interface GraphFinder {
  /** The rows of those paths that are stored, in any order. */
  graphRows(
    storePathHashes: readonly StorePathHash[],
    signal?: AbortSignal,
  ): Promise<readonly GraphRow[]>;
  /** The texts of those narinfos that are stored. */
  narinfoBodies(
    storePathHashes: readonly StorePathHash[],
    signal?: AbortSignal,
  ): Promise<ReadonlyMap<StorePathHash, string>>;
}

/** The columns of a GraphRow; the references are apart by spaces, `null` for none. */
export interface GraphColumns {
  readonly hash: string;
  readonly name: string;
  readonly kept_size: number | null;
  readonly refs: string | null;
}

export function readGraphRow({ hash, name, kept_size, refs }: GraphColumns): GraphRow {
  return {
    storePathHash: hash as StorePathHash,
    narName: name as NarName,
    keptBytes: kept_size === null ? undefined : Number(kept_size),
    references: refs?.split(" ").map((reference) => reference as StorePathHash) ?? [],
  };
}

interface BodyColumns {
  readonly hash: string;
  readonly body: string;
}

export function readBodies(rows: readonly BodyColumns[]): ReadonlyMap<StorePathHash, string> {
  return new Map(rows.map(({ hash, body }) => [hash as StorePathHash, body]));
}

/** A store path with a stored narinfo. */
export interface NamedPath {
  readonly storePathHash: StorePathHash;
  /** Name such as `hello-2.12`. */
  readonly name: string;
}

/** Searches all stored narinfos. */
export interface NameFinder {
  /**
   * Store paths whose name contains `text`, in any case of ASCII letters. The path that the
   * database met last comes first. A rare name takes a look at every narinfo, in steps. Throws the
   * reason of a signal that fires.
   */
  findNamed(text: string, countMax: number, signal?: AbortSignal): Promise<readonly NamedPath[]>;
}

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

export interface ListedNarinfo {
  readonly storePathHash: StorePathHash;
  readonly usedAtMs: number;
}

/** A NAR that no narinfo names. */
export interface ListedLooseNar {
  readonly narName: NarName;
  readonly usedAtMs: number;
  /** An uploaded file stays until then without a narinfo; 0 for every other NAR. */
  readonly stagedUntilMs: number;
}

export interface ListedDocument {
  readonly path: DocumentPath;
  readonly usedAtMs: number;
}

export interface ListedSignedPath extends SignedPath {
  readonly storePathHash: StorePathHash;
}

/** A name by which clients of another larder remember a NAR. */
export interface ListedFormerName {
  readonly stem: NarStem;
  readonly narName: NarName;
}

/** Lists all rows for a copy, in pages: those behind a key, in the order of keys. */
export interface RowLister {
  listNarinfos(after: string, countMax: number): Promise<readonly ListedNarinfo[]>;
  listLooseNars(after: string, countMax: number): Promise<readonly ListedLooseNar[]>;
  listSignedPaths(after: string, countMax: number): Promise<readonly ListedSignedPath[]>;
  listDocuments(after: string, countMax: number): Promise<readonly ListedDocument[]>;
  listFormerNames(after: string, countMax: number): Promise<readonly ListedFormerName[]>;
}

/** Marks that distinguish a copy of a database from one that a larder uses. */
export interface CopyMarks {
  /** Name of the original; `undefined` once a larder has opened the database for its own use. */
  originalName(): Promise<string | undefined>;
  /** `undefined`: it is no copy any more. */
  markCopy(originalName: string | undefined): Promise<void>;
}

/** The signing key that all members of a database share. */
export interface KeyKeeper {
  /** The text of the secret key; `undefined`: there is none. */
  signingKey(): Promise<string | undefined>;
  /** Adds the key unless the database has one. Resolves to the key of the database. */
  adoptSigningKey(text: string): Promise<string>;
}

/** Keeps the id that a database shares with its store of NAR files. */
export interface StorageIdKeeper {
  /** `undefined`: the database has had no store that has an id. */
  storageId(): Promise<StorageId | undefined>;
  /** Keeps the id unless the database has one. Resolves to the id of the database. */
  claimStorageId(id: StorageId): Promise<StorageId>;
}

export interface FormerNameFinder {
  /** The NAR that clients of another larder remember by this stem; `undefined`: none. */
  narOfFormerName(stem: NarStem): Promise<NarName | undefined>;
}

/** Keeps the names by which clients of another larder remember a NAR. They go with its row. */
export interface FormerNameKeeper extends FormerNameFinder {
  /** The stems that lead to the NAR, in alphabetical order. */
  formerNamesOf(narName: NarName): Promise<readonly NarStem[]>;
  /** Leads the stems to the NAR from now on. Without effect where it has no row. */
  putFormerNames(narName: NarName, stems: readonly NarStem[]): Promise<void>;
}
