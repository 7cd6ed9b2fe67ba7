import { existsSync } from "node:fs";
import { type Facts, Failure, messageOf } from "../base/failure.ts";
import type { Settings } from "../config/options.ts";
import type { KeyKeeper } from "../metadata/metadata_store.ts";
import { generateSecretKey, parseSecretKey, type SecretKey } from "../nix/signature.ts";
import { type Logger, SILENT } from "../telemetry/logger.ts";
import { openMetadata } from "./back_ends/metadata_back_end.ts";
import { type Folders, prepareFolders, storePlaces } from "./folders.ts";
import { isKeyShared, keyFileIn, keyFileOf } from "./key_files.ts";
import {
  adoptSigningKey,
  checkKeyPlace,
  existingKey,
  signingKey,
  type SigningKeyPlace,
} from "./signing_key.ts";

/** The key of a server, before its database is open. */
export interface KeyPlan extends SigningKeyPlace {
  /** True: the key is in the database, and a file of this machine is only its first value. */
  readonly isShared: boolean;
}

/**
 * Finds the place of a server's signing key; `undefined`: it does not sign. Throws a Failure for a
 * place of no use. Call it before a first start makes the database. The key is written afterwards,
 * so that a start that fails on its database leaves none behind.
 */
export async function planSigningKey(
  settings: Settings,
  { storage }: Pick<Folders, "storage">,
): Promise<KeyPlan | undefined> {
  if (!settings["cache.sign-narinfo"]) return undefined;
  const path = keyFileOf(settings, storage);
  // A missing key is an error unless this is the first start: clients trust the old one.
  const mayMake = path === keyFileIn(storage) || isFirstStart(settings["cache.database-url"]);
  const hostname = settings["cache.hostname"];
  const plan = { path, hostname, mayMake, isShared: isKeyShared(settings) };
  await checkKeyPlace(plan);
  return plan;
}

/** Log facts if file and database have different keys: the key in use, and the remedy. */
const FILE_USED = {
  used: "file",
  hint: "give every larder of this database the same file, or leave --cache-secret-key-path out",
};
const DATABASE_USED = {
  used: "database",
  hint: "remove the file, or name it with --cache-secret-key-path at every larder",
};

/** The planned key, made at a first start. Throws a Failure for one that cannot be read or kept. */
export async function openSigningKey(
  plan: KeyPlan,
  keys: KeyKeeper | undefined,
  log: Pick<Logger, "event">,
): Promise<SecretKey> {
  if (keys === undefined) return await signingKey(plan);
  const { path, hostname, isShared } = plan;
  const warnOfTwo = (advice: Facts) => log.event("signing-key-differs", { path, ...advice });
  if (!isShared) {
    const key = await signingKey(plan);
    const shared = await sharedKey(keys);
    if (shared !== undefined && shared.text !== key.text) warnOfTwo(FILE_USED);
    return key;
  }
  const file = await existingKey(path);
  const first = file ?? generateSecretKey(hostname);
  const shared = parseShared(await keys.adoptSigningKey(first.text));
  if (file !== undefined && shared.text !== file.text) warnOfTwo(DATABASE_USED);
  return shared;
}

/**
 * The key that a server with these settings signs with; `undefined`: it does not sign, or has not
 * started yet. Throws a Failure for a key of no use.
 */
export async function presentKey(
  settings: Settings,
  storage: string,
  keys: KeyKeeper | undefined,
): Promise<SecretKey | undefined> {
  if (!settings["cache.sign-narinfo"]) return undefined;
  const shared = keys && isKeyShared(settings) ? await sharedKey(keys) : undefined;
  return shared ?? await existingKey(keyFileOf(settings, storage));
}

/**
 * Makes another cache's key the one of these settings, if they have none yet. Returns the one that
 * they have then: larder never replaces a key that clients trust.
 */
export async function adoptKey(settings: Settings, key: SecretKey): Promise<SecretKey> {
  const path = keyFileOf(settings, prepareFolders(settings).storage);
  if (!isKeyShared(settings)) return await adoptSigningKey(path, key);
  await using metadata = await openMetadata(storePlaces(settings).database, SILENT);
  const first = await existingKey(path) ?? key;
  const text = await metadata.keys?.adoptSigningKey(first.text);
  return text === undefined ? first : parseShared(text);
}

/** The key in the database; `undefined`: there is none. Throws a Failure for one of no use. */
export async function sharedKey(keys: KeyKeeper): Promise<SecretKey | undefined> {
  const text = await keys.signingKey();
  return text === undefined ? undefined : parseShared(text);
}

function parseShared(text: string): SecretKey {
  try {
    return parseSecretKey(text);
  } catch (error) {
    const message = `Cannot use the signing key in the database: ${messageOf(error)}`;
    throw new Failure("broken", message, {}, error);
  }
}

/** True for an absent SQLite file. False for PostgreSQL, which does not show a first start. */
function isFirstStart(database: Settings["cache.database-url"]): boolean {
  return database.kind === "sqlite" && !existsSync(database.path);
}
