import type { DocumentPath } from "../nix/document_name.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { NarSource } from "./metadata_store.ts";

/** A document without its bytes. */
export interface DocumentFacts {
  readonly path: DocumentPath;
  /** The URL of the upstream that it is from, without credentials. */
  readonly upstream: string;
  /** Of its kind, or what its upstream called it. */
  readonly type: string;
  /** The Content-Encoding that the bytes have. */
  readonly encoding?: string;
  /** Names these very bytes. */
  readonly tag: string;
  readonly size: number;
  /** True where the upstream is to be asked again from time to time. */
  readonly mayChange: boolean;
  /** The NAR that it leads to, of a debuginfo document. */
  readonly narName?: NarName;
}

/** A document that is kept; its bytes are had piece by piece. */
export interface DocumentRow extends DocumentFacts {
  /** Never that of another document, also not of the same path. */
  readonly id: number;
  /** When an upstream last said so. */
  readonly checkedAtMs: number;
}

export type DocumentChange =
  /**
   * Replaces one of the same path. Whatever was used longest ago goes, until all documents have
   * no more than `totalBytesMax`; where too many would have to go at once it is not kept.
   */
  | {
    readonly kind: "put-document";
    readonly document: DocumentFacts;
    /** All of its bytes, in order. */
    readonly pieces: readonly Uint8Array[];
    readonly totalBytesMax: number;
    readonly atMs: number;
  }
  /** An upstream said that it is still the same. */
  | { readonly kind: "check-document"; readonly path: DocumentPath; readonly atMs: number }
  | { readonly kind: "use-document"; readonly path: DocumentPath; readonly atMs: number };

/** Keeps what a binary cache has beside narinfos and NARs. */
export interface DocumentKeeper {
  findDocument(path: DocumentPath): Promise<DocumentRow | undefined>;
  /** `undefined` behind its last piece, and of a document that is gone or replaced. */
  documentPiece(id: number, number: number): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Bytes of all that are kept. */
  documentBytes(): Promise<number>;
  /** Where debuginfo documents say that a NAR is: one source an upstream. */
  archivesOf(narName: NarName): Promise<readonly NarSource[]>;
}
