import { reasonOf } from "../../base/failure.ts";
import type { StorageId } from "../../base/storage_id.ts";
import { storeNamesOf, type StorePlaces } from "../back_ends/back_ends.ts";
import { type NarPlace, openNars } from "../back_ends/nar_back_end.ts";

/** NAR names begin so: the list of these is short. */
const PREFIX = "0000";

/** Lists a few NAR files. Returns why that failed; writes nothing. */
export async function narsProblem(place: NarPlace): Promise<string | undefined> {
  try {
    await using backEnd = await openNars(place);
    for await (const _ of backEnd.nars.list(PREFIX)) break;
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}

/**
 * The database, in words, that the NAR files belong to, if it is not the one with this id. Throws
 * if that is unreadable; writes nothing.
 */
export async function foreignDatabase(
  places: StorePlaces,
  id: StorageId | undefined,
): Promise<string | undefined> {
  await using backEnd = await openNars(places.nars);
  const mark = await backEnd.marks.read();
  if (mark === undefined || mark.id === id) return undefined;
  const { isBeside, names } = storeNamesOf(places);
  // The next start takes it over.
  return isBeside && mark.database === names.database ? undefined : mark.database;
}
