import type { KeptLister, KeptNar } from "../../metadata/metadata_store.ts";
import { NIX32_ALPHABET } from "../../nix/nix32.ts";
import type { StoredName } from "../../nix/stored_name.ts";
import type { ListedNar, NarLister } from "../../storage/nar_store.ts";

export interface ComparedStores {
  readonly metadata: KeptLister;
  readonly nars: NarLister;
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

export interface ShardComparer {
  /**
   * Compares the rows and files whose names begin with `shard`, with their sizes if asked to.
   * Throws if either is unreadable.
   */
  compare(shard: string, sizes: boolean): Promise<ShardComparison>;
}

/** Compares on this thread. */
export class StoreComparer implements ShardComparer {
  readonly #stores: ComparedStores;

  constructor(stores: ComparedStores) {
    this.#stores = stores;
  }

  async compare(shard: string, sizes: boolean): Promise<ShardComparison> {
    const { metadata, nars } = this.#stores;
    // Files first: a row comes after its file, so that none is missed in between.
    const files = await Array.fromAsync(nars.list(shard, { sizes }));
    return compareShard(await metadata.keptNars(shard), files);
  }
}

/** Holds the files of one shard against its rows. Both may change meanwhile: look again. */
export function compareShard(
  rows: readonly KeptNar[],
  files: readonly ListedNar[],
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

const CHARS = [...NIX32_ALPHABET];

/** The 1,024 prefixes that divide all stored names into shards of nearly equal size. */
export const SHARDS: readonly string[] = CHARS.flatMap((first) =>
  CHARS.map((second) => first + second)
);
