import { Failure } from "../../base/failure.ts";
import type { ChangeFeed } from "../../metadata/change_feed.ts";
import type { DamageFinder, MetadataStore } from "../../metadata/metadata_store.ts";
import { openDatabase, openForReading } from "../../metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../metadata/sqlite/sqlite_metadata_store.ts";
import { LocalNarStore } from "../../storage/local/local_nar_store.ts";
import type { NarStore } from "../../storage/nar_store.ts";

/** The places of the metadata and of the NAR files. A message to a Worker can hold them. */
export interface StorePlaces {
  readonly databasePath: string;
  readonly narFolder: string;
}

/** The two stores as they are, without memory caches or traces. */
export interface BackEnds extends AsyncDisposable {
  readonly metadata: MetadataStore & DamageFinder & ChangeFeed;
  readonly nars: NarStore;
}

/** Makes a missing database. Throws a Failure that names an unusable one. */
export async function openBackEnds({ databasePath, narFolder }: StorePlaces): Promise<BackEnds> {
  return backEnds(new SqliteMetadataStore(await openDatabase(databasePath)), narFolder);
}

/** Opens stores for a check. Throws a Failure that names a missing one. */
export async function openPresentBackEnds(places: StorePlaces): Promise<BackEnds> {
  for (const path of [places.databasePath, places.narFolder]) requireStorage(path);
  return await openBackEnds(places);
}

/** Opens stores that another thread writes. */
export function readBackEnds({ databasePath, narFolder }: StorePlaces): BackEnds {
  return backEnds(new SqliteMetadataStore(openForReading(databasePath)), narFolder);
}

function backEnds(metadata: SqliteMetadataStore, narFolder: string): BackEnds {
  const dispose = () => metadata[Symbol.asyncDispose]();
  return { metadata, nars: new LocalNarStore(narFolder), [Symbol.asyncDispose]: dispose };
}

function requireStorage(path: string): void {
  try {
    Deno.statSync(path);
  } catch (error) {
    const hint = "give the storage with --cache-storage-local, or the user who may read it";
    throw new Failure("broken", `Cannot check ${path}: it is unreadable; ${hint}`, {}, error);
  }
}
