import { Failure, messageOf } from "../base/failure.ts";
import type { ImportProgress, ImportWatcher } from "../cache/import/importer.ts";
import type { Handling } from "../cache/import/import_nar.ts";
import { ncpsPlaces } from "../cache/import/ncps/ncps_folder.ts";
import { NcpsSource } from "../cache/import/ncps/ncps_source.ts";
import type { Settings } from "../config/options.ts";
import { parseSecretKey, type SecretKey } from "../nix/signature.ts";
import { storageFolder } from "./folders.ts";
import { importInto } from "./import.ts";
import { WorkerNcps } from "./workers/worker_ncps.ts";
import { isKeyShared, keyFileOf } from "./key_files.ts";
import { adoptKey } from "./own_key.ts";

export interface NcpsImportOrder {
  /** ncps's `--cache-storage-local`. */
  readonly folder: string;
  /** ncps's `--cache-database-url`; `undefined`: the one beside its storage. */
  readonly databaseUrl: string | undefined;
  readonly handling: Handling;
  readonly signal: AbortSignal;
}

/** Outcome of taking over ncps's signing key. */
export interface NcpsKey {
  /** "other": larder had a key already, and stays with it. "none": ncps has it in a file. */
  readonly outcome: "adopted" | "other" | "none";
  /** larder's key file; `undefined`: its key is in the database. */
  readonly path: string | undefined;
  /** The public key of ncps. */
  readonly publicKey: string | undefined;
}

export interface NcpsImported {
  readonly progress: ImportProgress;
  readonly key: NcpsKey;
}

/** Brings the storage of an ncps into the one of the settings: entries, pins, uses and key. */
export async function importNcps(
  settings: Settings,
  { folder, databaseUrl, handling, signal }: NcpsImportOrder,
  watcher: ImportWatcher,
): Promise<NcpsImported> {
  const { store, databasePath } = ncpsPlaces(folder, databaseUrl);
  await using source = await NcpsSource.open(store, new WorkerNcps(databasePath), signal);
  const ncpsKey = keyOf(source);
  // With this key larder's signatures are those that ncps has made.
  const secretKey = ncpsKey && await adoptKey(settings, ncpsKey);
  const isSame = secretKey?.publicKey.text === ncpsKey?.publicKey.text;
  const progress = await importInto(settings, source, {
    ...{ handling, signal },
    sourceKey: ncpsKey?.publicKey,
  }, watcher);
  const outcome = ncpsKey === undefined ? "none" : isSame ? "adopted" : "other";
  const path = isKeyShared(settings) ? undefined : keyFileOf(settings, storageFolder(settings));
  return { progress, key: { outcome, path, publicKey: ncpsKey?.publicKey.text } };
}

function keyOf({ secretKeyText }: NcpsSource): SecretKey | undefined {
  try {
    return secretKeyText === undefined ? undefined : parseSecretKey(secretKeyText);
  } catch (error) {
    const message = `Cannot use the secret key of ncps: ${messageOf(error)}`;
    throw new Failure("broken", message, {}, error);
  }
}
