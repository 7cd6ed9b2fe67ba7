import type { Compression } from "./compression.ts";
import type { FileHash, NarHash } from "./hash.ts";
import type { Signature } from "./signature.ts";
import type { BaseName, StorePathHash } from "./store_path.ts";

/** One line of a narinfo as read: `key: value`. */
export interface NarinfoLine {
  readonly key: string;
  readonly value: string;
}

/** The metadata of one store object. Sizes are in bytes. */
export interface Narinfo {
  readonly storePath: string;
  readonly baseName: BaseName;
  readonly storePathHash: StorePathHash;
  /** URL as read: relative to its binary cache, query included. */
  readonly url: string;
  readonly compression: Compression;
  readonly fileHash?: FileHash;
  readonly fileSize?: number;
  readonly narHash: NarHash;
  readonly narSize: number;
  /** References in the order read. */
  readonly references: readonly BaseName[];
  /** Absent as well when the narinfo says `unknown-deriver`. */
  readonly deriver?: BaseName;
  /** The valid ones: larder forwards no others. */
  readonly signatures: readonly Signature[];
  /** Every line in the order read, unknown fields included, unreadable signatures not. */
  readonly lines: readonly NarinfoLine[];
}
