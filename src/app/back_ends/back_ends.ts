import { Failure } from "../../base/failure.ts";
import type { ChangeFeed } from "../../metadata/change_feed.ts";
import type { DamageFinder, MetadataStore } from "../../metadata/metadata_store.ts";
import { openDatabase, openForReading } from "../../metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../metadata/sqlite/sqlite_metadata_store.ts";
import { checkNars, type NarBackEnd, type NarPlace, openNars } from "./nar_back_end.ts";

/** The places of the metadata and of the NAR files. A message to a Worker can hold them. */
export interface StorePlaces {
  readonly databasePath: string;
  readonly nars: NarPlace;
}

/** The two stores as they are, without memory caches or traces. */
export interface BackEnds extends NarBackEnd {
  readonly metadata: MetadataStore & DamageFinder & ChangeFeed;
}

/** Makes a missing database. Throws a Failure that names an unusable one, or an unusable bucket. */
export async function openBackEnds(places: StorePlaces): Promise<BackEnds> {
  await checkNars(places.nars);
  return await backEnds(new SqliteMetadataStore(await openDatabase(places.databasePath)), places);
}

/** Opens stores for a check. Throws a Failure that names a missing one. */
export async function openPresentBackEnds(places: StorePlaces): Promise<BackEnds> {
  const { databasePath, nars } = places;
  requireStorage(databasePath);
  if (nars.kind === "local") requireStorage(nars.folder);
  return await openBackEnds(places);
}

/** Opens stores that another thread writes. */
export async function readBackEnds(places: StorePlaces): Promise<BackEnds> {
  return await backEnds(new SqliteMetadataStore(openForReading(places.databasePath)), places);
}

async function backEnds(metadata: SqliteMetadataStore, places: StorePlaces): Promise<BackEnds> {
  await using opened = new AsyncDisposableStack();
  opened.use(metadata);
  const { nars, locator } = opened.use(await openNars(places.nars));
  const resources = opened.move();
  return { metadata, nars, locator, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

function requireStorage(path: string): void {
  try {
    Deno.statSync(path);
  } catch (error) {
    const hint = "give the storage with --cache-storage-local, or the user who may read it";
    throw new Failure("broken", `Cannot check ${path}: it is unreadable; ${hint}`, {}, error);
  }
}
