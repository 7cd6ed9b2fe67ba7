import type { Bytes } from "../base/bytes.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { NarSource } from "./metadata_store.ts";

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
