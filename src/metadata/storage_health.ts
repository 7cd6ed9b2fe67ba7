import type { StorageId } from "../base/storage_id.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { DamageFinder, MetadataStore, StorageIdKeeper } from "./metadata_store.ts";
import type { Stock } from "./space_keeper.ts";

/** A stored store path, for a trial. */
export interface StoredSample {
  readonly storePathHash: StorePathHash;
  readonly narName: NarName;
  /** Size of its NAR file. */
  readonly fileSize: number;
  /** The upstreams that have it, by URL. */
  readonly upstreams: readonly string[];
}

/** The state of the stored metadata. */
export interface StorageHealth {
  /** Id of the storage, which the store of NAR files has, too; `undefined`: none yet. */
  readonly storageId: StorageId | undefined;
  /** One line for each fault of the database. */
  readonly damage: readonly string[];
  readonly areSumsRight: boolean;
  readonly stock: Stock;
  /** Some stored paths, the smallest first. */
  readonly samples: readonly StoredSample[];
}

/** Beginnings of NAR names. Hashes are even, so a few of these find something in any storage. */
const PREFIXES = [..."01"].flatMap((first) =>
  [..."0123456789abcdfghijklmnpqrsvwxyz"].map((second) => first + second)
);

const SAMPLES_MAX = 50;

/** Reads the health. Writes nothing; takes seconds for a large database. */
export async function readStorageHealth(
  metadata: MetadataStore & DamageFinder & StorageIdKeeper,
): Promise<StorageHealth> {
  const damage = await metadata.damage();
  const stock = await metadata.stock();
  return {
    damage,
    stock,
    storageId: await metadata.storageId(),
    areSumsRight: await metadata.areSumsRight(),
    samples: await samplesOf(metadata),
  };
}

async function samplesOf(metadata: MetadataStore): Promise<readonly StoredSample[]> {
  const samples: StoredSample[] = [];
  for (const prefix of PREFIXES) {
    for (const { name, fileSize } of await metadata.keptNars(prefix)) {
      const [storePathHash] = await metadata.narinfosOf(name);
      if (storePathHash === undefined) continue;
      const upstreams = (await metadata.sourcesOf(name)).map(({ upstream }) => upstream);
      samples.push({ storePathHash, narName: name, fileSize, upstreams });
      if (samples.length >= SAMPLES_MAX) break;
    }
    if (samples.length >= SAMPLES_MAX) break;
  }
  return samples.toSorted((one, other) => one.fileSize - other.fileSize);
}
