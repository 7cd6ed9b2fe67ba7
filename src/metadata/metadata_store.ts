import { Failure } from "../base/failure.ts";
import type { Compression } from "../nix/compression.ts";
import type { FileHash, NarHash, Sha256 } from "../nix/hash.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { Seal, StoredName } from "../nix/stored_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { DocumentChange, DocumentKeeper } from "./document_keeper.ts";
import type { RowSweeper } from "./row_sweeper.ts";
import type { SpaceKeeper } from "./space_keeper.ts";

/** Our own signature of a narinfo, and the public key that it is checked with. */
export interface OwnSignature {
  readonly publicKey: string;
  /** As it stands behind `Sig: `. */
  readonly text: string;
}

/** A narinfo as it is kept. */
export interface NarinfoRow {
  readonly storePathHash: StorePathHash;
  /** The text that is served, but for our own signature. */
  readonly body: string;
  readonly narName: NarName;
  /** True when a trusted key's signature was found: only then may we sign too. */
  readonly trusted: boolean;
  readonly ownSignature?: OwnSignature;
}

/** What is known of a NAR file, whether we keep it or not. */
export interface NarRow {
  readonly name: NarName;
  readonly compression: Compression;
  readonly narHash: NarHash;
  readonly narSize: number;
  /** As the narinfo announces them. */
  readonly fileHash?: FileHash;
  readonly fileSize?: number;
}

/** A NAR file that is kept, as it was measured when it was kept. */
export interface KeptFile {
  /** The stored object that holds it. */
  readonly at: StoredName;
  /** `undefined` where nobody has seen its bytes since there are seals. */
  readonly seal?: Seal;
  readonly fileHash: Sha256;
  readonly fileSize: number;
}

export interface NarRecord extends NarRow {
  readonly kept?: KeptFile;
}

/** Where an upstream has a NAR file: its path and query, opaque to us. */
export interface NarSource {
  /** The upstream's URL, without credentials. */
  readonly upstream: string;
  /** Relative to that URL, as its narinfo gave it. */
  readonly location: string;
}

/** A store path that an operator asked to keep, with its closure. */
export interface PinRoot {
  readonly storePathHash: StorePathHash;
  readonly pinnedAtMs: number;
}

/** Another narinfo gave the NAR name to another NAR, or to a file of other hash or size. */
export class NarNameTaken extends Failure {
  constructor(narName: NarName) {
    super("corrupt", "Cannot put narinfo: its NAR name stands for another file", { nar: narName });
  }
}

/** Somebody else has settled what was on its way in, and removed it: it must not be kept. */
export class IntentLost extends Failure {
  constructor(at: StoredName) {
    super("broken", "Cannot keep NAR file: its intent is gone", { nar: at });
  }
}

/** One write. A list of them is applied whole or not at all. */
export type Change =
  /**
   * Refused where the NAR's name is known with another NAR hash, file hash or file size: a client
   * may hold a narinfo that says what the row says, so the row stays as it is.
   */
  | {
    readonly kind: "put-narinfo";
    readonly row: NarinfoRow;
    readonly references: readonly StorePathHash[];
    readonly nar: NarRow;
    readonly sources: readonly NarSource[];
    readonly atMs: number;
  }
  | { readonly kind: "put-source"; readonly narName: NarName; readonly source: NarSource }
  | { readonly kind: "remove-narinfo"; readonly storePathHash: StorePathHash }
  /** The intent to publish, before the object is there: whatever a crash leaves is then found. */
  | { readonly kind: "nar-publishing"; readonly at: StoredName; readonly owner: string }
  /**
   * The object is the NAR's kept file from now on, and its intent is over; refused with IntentLost
   * where there is none. One that was kept in its place is marked, for the same owner to remove.
   */
  | { readonly kind: "nar-kept"; readonly file: KeptFile; readonly atMs: number }
  /** Its bytes were seen to be right, as it is now. Nothing where another object is kept. */
  | { readonly kind: "nar-sealed"; readonly at: StoredName; readonly seal: Seal }
  /** Marked for removal: counts until `nar-gone`. Nothing where another object is kept. */
  | { readonly kind: "nar-marked"; readonly at: StoredName; readonly owner: string }
  /** Nothing is left of an object that was on its way in or out. */
  | { readonly kind: "nar-gone"; readonly at: StoredName }
  | {
    readonly kind: "use-narinfo";
    readonly storePathHash: StorePathHash;
    readonly atMs: number;
  }
  | { readonly kind: "use-nar"; readonly narName: NarName; readonly atMs: number }
  /** A root that is pinned already stays as it is. */
  | { readonly kind: "put-pin"; readonly pin: PinRoot }
  | { readonly kind: "remove-pin"; readonly storePathHash: StorePathHash }
  | DocumentChange;

export interface NarinfoFinder {
  findNarinfo(storePathHash: StorePathHash): Promise<NarinfoRow | undefined>;
}

export interface FindOptions {
  /** What others have just written counts too: nothing is taken from memory. */
  readonly fresh?: boolean;
}

export interface NarFinder {
  findNar(narName: NarName, options?: FindOptions): Promise<NarRecord | undefined>;
  /** One an upstream, in no particular order; empty for an unknown NAR. */
  sourcesOf(narName: NarName): Promise<readonly NarSource[]>;
  /** The store paths whose narinfo leads to this NAR file. */
  narinfosOf(narName: NarName): Promise<readonly StorePathHash[]>;
}

/** A NAR file as its row tells that it is kept. */
export interface KeptNar extends KeptFile {
  readonly name: NarName;
}

export interface KeptLister {
  /** Those whose name begins with `prefix`, in the order of names. */
  keptNars(prefix: string): Promise<readonly KeptNar[]>;
}

export interface ReferenceFinder {
  /** Those references whose own narinfo is kept or not; a path that we do not keep has none. */
  referencesOf(storePathHash: StorePathHash): Promise<readonly StorePathHash[]>;
}

export interface WriteOptions {
  /** Waits as long as another process locks the database, where others give up after seconds. */
  readonly patient?: boolean;
}

export interface ChangeWriter {
  /**
   * Resolves when all of them are written; rejects when none is, with NarNameTaken for a
   * put-narinfo whose NAR name is another file's. Lists that share a key (a store path, a NAR or
   * a document) are applied in the order of the calls; others need not wait for each other. A use
   * may come late: it only ever raises a time.
   */
  apply(changes: readonly Change[], options?: WriteOptions): Promise<void>;
}

export interface PinFinder {
  findPin(storePathHash: StorePathHash): Promise<PinRoot | undefined>;
  /** In the order of pinning. */
  pins(): Promise<readonly PinRoot[]>;
}

export type MetadataStore =
  & NarinfoFinder
  & NarFinder
  & KeptLister
  & ReferenceFinder
  & ChangeWriter
  & PinFinder
  & SpaceKeeper
  & RowSweeper
  & DocumentKeeper;
