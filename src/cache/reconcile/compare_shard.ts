import type { KeptNar } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";

/** A NAR file as it lies on disk; without its size where nobody looked. */
export interface NarOnDisk {
  readonly name: NarName;
  readonly fileSize?: number;
}

/** What rows and files of one part of the store do not agree on. */
export interface ShardComparison {
  /** How many files are there. */
  readonly files: number;
  /** Kept by their row, and not there, or of another size. */
  readonly lost: readonly NarName[];
  /** There, and kept by no row. */
  readonly stray: readonly NarName[];
}

/** Holds the files of one shard against its rows. Both may change meanwhile: look again. */
export function compareShard(
  rows: readonly KeptNar[],
  files: readonly NarOnDisk[],
): ShardComparison {
  const sizes = new Map(files.map(({ name, fileSize }) => [name, fileSize]));
  const kept = new Set(rows.map(({ name }) => name));
  const isLost = ({ name, fileSize }: KeptNar) =>
    !sizes.has(name) || (sizes.get(name) ?? fileSize) !== fileSize;
  return {
    files: files.length,
    lost: rows.filter(isLost).map(({ name }) => name),
    stray: files.filter(({ name }) => !kept.has(name)).map(({ name }) => name),
  };
}
