import type { KeptLister, KeptNar } from "../../metadata/metadata_store.ts";
import { NIX32_ALPHABET } from "../../nix/nix32.ts";
import type { StoredName } from "../../nix/stored_name.ts";
import type { ListedNar, NarLister } from "../../storage/nar_store.ts";

export interface ComparedStores {
  readonly metadata: KeptLister;
  readonly nars: NarLister;
}

/** The differences between the rows and the files of one shard. */
export interface ShardComparison {
  /** The count of files. */
  readonly files: number;
  /** Objects with a row that are missing, or have another size. */
  readonly lost: readonly StoredName[];
  /** Objects without a row. */
  readonly orphans: readonly StoredName[];
}

export interface ShardComparer {
  /**
   * Compares the rows and files whose names begin with `shard`, with their sizes if `sizes`.
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

/** Compares the files of one shard with its rows. Both may change: check each difference again. */
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
    orphans: files.filter(({ at }) => !kept.has(at)).map(({ at }) => at),
  };
}

const CHARS = [...NIX32_ALPHABET];

/**
 * The 1,024 prefixes that divide all stored names. A SHA-256 in base 32 begins with 0 or 1, so those
 * of NARs are in 64 shards of nearly equal size.
 */
export const SHARDS: readonly string[] = [...shardsWhile(() => false)];

/** Prefixes that divide all stored names: of one character while `isQuick`, then of two. */
export function* shardsWhile(isQuick: () => boolean): Generator<string, void> {
  for (const first of CHARS) {
    if (isQuick()) yield first;
    else for (const second of CHARS) yield first + second;
  }
}
