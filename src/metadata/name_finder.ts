import type { StorePathHash } from "../nix/store_path.ts";

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
