import { Failure } from "../../base/failure.ts";
import { createLogger, type Logger } from "../../telemetry/logger.ts";
import {
  type DatabasePlace,
  type MetadataBackEnd,
  openMetadata,
  readMetadata,
} from "./metadata_back_end.ts";
import { checkNars, type NarBackEnd, type NarPlace, openNars } from "./nar_back_end.ts";

/** The places of the metadata and of the NAR files. A message to a Worker can hold them. */
export interface StorePlaces {
  readonly database: DatabasePlace;
  readonly nars: NarPlace;
}

/** The two stores as they are, without memory caches or traces. */
export interface BackEnds extends NarBackEnd {
  readonly metadata: MetadataBackEnd;
}

/** For commands, which report each failure themselves. */
const SILENT = createLogger("error", { write: () => undefined });

/** Makes a missing database. Throws a Failure that names an unusable one, or an unusable bucket. */
export async function openBackEnds(places: StorePlaces, log: Logger = SILENT): Promise<BackEnds> {
  await checkNars(places.nars);
  return await backEnds(await openMetadata(places.database, log), places);
}

/** Opens stores for a check. Throws a Failure that names a missing one. */
export async function openPresentBackEnds(places: StorePlaces): Promise<BackEnds> {
  const { database, nars } = places;
  if (database.kind === "sqlite") requireStorage(database.path);
  if (nars.kind === "local") requireStorage(nars.folder);
  return await openBackEnds(places);
}

/** Opens stores that another thread writes. */
export async function readBackEnds(places: StorePlaces): Promise<BackEnds> {
  return await backEnds(await readMetadata(places.database, SILENT), places);
}

async function backEnds(metadata: MetadataBackEnd, places: StorePlaces): Promise<BackEnds> {
  await using opened = new AsyncDisposableStack();
  opened.use(metadata);
  const narBackEnd = opened.use(await openNars(places.nars));
  const resources = opened.move();
  return { ...narBackEnd, metadata, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

function requireStorage(path: string): void {
  try {
    Deno.statSync(path);
  } catch (error) {
    const hint = "give the storage with --cache-storage-local, or the user who may read it";
    throw new Failure("broken", `Cannot check ${path}: it is unreadable; ${hint}`, {}, error);
  }
}
