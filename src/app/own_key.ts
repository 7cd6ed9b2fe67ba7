import { existsSync } from "node:fs";
import type { Settings } from "../config/options.ts";
import type { Folders } from "./folders.ts";
import { keyFileIn, keyFileOf } from "./key_files.ts";
import { checkKeyPlace, type SigningKeyPlace } from "./signing_key.ts";

/**
 * The place of a server's signing key; `undefined`: it does not sign. Throws a Failure for a place
 * of no use. Call it before a first start makes the database. Write the key only afterwards, so
 * that a start that fails on its database leaves none behind.
 */
export function planSigningKey(
  settings: Settings,
  { storage }: Pick<Folders, "storage">,
): SigningKeyPlace | undefined {
  if (!settings["cache.sign-narinfo"]) return undefined;
  const path = keyFileOf(settings, storage);
  // A missing key is an error unless this is the first start: clients trust the old one.
  const mayMake = path === keyFileIn(storage) || isFirstStart(settings["cache.database-url"]);
  const place = { path, hostname: settings["cache.hostname"], mayMake };
  checkKeyPlace(place);
  return place;
}

/** False where nobody can tell. */
function isFirstStart(database: Settings["cache.database-url"]): boolean {
  return database.kind === "sqlite" && !existsSync(database.path);
}
