import type { DocumentPath } from "../nix/document_name.ts";
import type { NarName, NarStem } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { SignedPath } from "./signed_path_keeper.ts";

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
  listFormerNames(after: string, countMax: number): Promise<readonly ListedFormerName[]>;
  listDocuments(after: string, countMax: number): Promise<readonly ListedDocument[]>;
}
