import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";

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

export interface BodyColumns {
  readonly hash: string;
  readonly body: string;
}

export function readBodies(rows: readonly BodyColumns[]): ReadonlyMap<StorePathHash, string> {
  return new Map(rows.map(({ hash, body }) => [hash as StorePathHash, body]));
}
