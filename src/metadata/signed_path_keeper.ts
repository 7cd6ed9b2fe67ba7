import type { Sha256 } from "../nix/hash.ts";
import type { StorePathHash } from "../nix/store_path.ts";

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
