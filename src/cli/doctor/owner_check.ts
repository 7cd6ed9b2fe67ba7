import type { StorePlaces } from "../../app/back_ends/back_ends.ts";
import type { DatabaseState } from "../../app/doctor/read_database.ts";
import { foreignDatabase } from "../../app/doctor/read_nars.ts";
import { type Finding, findingsOn } from "./finding.ts";

/** The finding on NAR files of another database; none if they are this one's. */
export async function checkOwner(
  places: StorePlaces,
  state: DatabaseState,
): Promise<readonly Finding[]> {
  const isKnown = "health" in state || state.kind === "missing";
  if (!isKnown) return [];
  const id = "health" in state ? state.health.storageId : undefined;
  // The check of the bucket reports an unreadable one.
  const owner = await foreignDatabase(places, id).catch(() => undefined);
  if (owner === undefined) return [];
  const advice = "give that one with --cache-database-url, or run larder fsck --adopt";
  return [findingsOn("nar files").failed(`they belong to another database (${owner})`, advice)];
}
