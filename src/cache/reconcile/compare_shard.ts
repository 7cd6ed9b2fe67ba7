import type { KeptNar } from "../../metadata/metadata_store.ts";
import type { StoredName } from "../../nix/stored_name.ts";

/** A NAR file as it lies on disk; without its size where nobody looked. */
export interface NarOnDisk {
  readonly at: StoredName;
  readonly fileSize?: number;
}

/** What rows and files of one part of the store do not agree on. */
export interface ShardComparison {
  /** How many files are there. */
  readonly files: number;
  /** Kept by their row, and not there, or of another size. */
  readonly lost: readonly StoredName[];
  /** There, and kept by no row. */
  readonly stray: readonly StoredName[];
}

/** Holds the files of one shard against its rows. Both may change meanwhile: look again. */
export function compareShard(
  rows: readonly KeptNar[],
  files: readonly NarOnDisk[],
): ShardComparison {
  const sizes = new Map(files.map(({ at, fileSize }) => [at, fileSize]));
  const kept = new Set(rows.map(({ at }) => at));
  const isLost = ({ at, fileSize }: KeptNar) =>
    !sizes.has(at) || (sizes.get(at) ?? fileSize) !== fileSize;
  return {
    files: files.length,
    lost: rows.filter(isLost).map(({ at }) => at),
    stray: files.filter(({ at }) => !kept.has(at)).map(({ at }) => at),
  };
}
