import { storageFolder, storePlaces } from "../../app/folders.ts";
import { keyFileOf } from "../../app/key_files.ts";
import { existingKey } from "../../app/signing_key.ts";
import { messageOf } from "../../base/failure.ts";
import { OPTIONS, type Settings } from "../../config/options.ts";
import type { OptionTable } from "../../config/kinds/option.ts";
import type { KeyFacts } from "./key_check.ts";
import type { PermissionPlaces } from "./permission_check.ts";

/** Paths that larder writes with these settings, and the files that hold secrets. */
export function placesOf(settings: Settings): PermissionPlaces {
  const storage = storageFolder(settings);
  const { nars } = storePlaces(settings);
  const temp = settings["cache.temp-path"] ?? `${storage}/tmp`;
  const table: OptionTable = OPTIONS;
  const keys = Object.keys(OPTIONS) as (keyof Settings)[];
  const named = keys.filter((key) => table[key]?.isSecretFile)
    .flatMap((key) => typeof settings[key] === "string" ? [settings[key]] : []);
  const secrets = new Set([...named, keyFileOf(settings, storage)]);
  return {
    storage,
    written: databaseFiles(settings),
    sharded: [...nars.kind === "local" ? [nars.folder] : [], temp],
    secrets: [...secrets, ...databaseFiles(settings)],
  };
}

/** The newest time of the storage's folders and its database; `undefined`: there is none. */
export function newestTimeIn(settings: Settings): number | undefined {
  const { nars } = storePlaces(settings);
  const folders = nars.kind === "local" ? [nars.folder] : [];
  const shards = folders.flatMap((folder) => names(folder).map((name) => `${folder}/${name}`));
  const all = [...databaseFiles(settings), ...folders, ...shards];
  const times = all.flatMap((path) => timeOf(path) ?? []);
  return times.length === 0 ? undefined : Math.max(...times);
}

/** None for PostgreSQL. */
function databaseFiles(settings: Settings): readonly string[] {
  const { database } = storePlaces(settings);
  if (database.kind !== "sqlite") return [];
  return ["", "-wal", "-shm"].map((end) => `${database.path}${end}`);
}

/** The key in the file. Never throws. */
export async function keyFacts(
  path: string,
): Promise<Pick<KeyFacts, "path" | "publicKey" | "problem">> {
  try {
    return { path, publicKey: (await existingKey(path))?.publicKey.text, problem: undefined };
  } catch (error) {
    return { path, publicKey: undefined, problem: messageOf(error) };
  }
}

function names(folder: string): readonly string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name);
  } catch {
    return [];
  }
}

function timeOf(path: string): number | undefined {
  try {
    return Deno.statSync(path).mtime?.getTime();
  } catch {
    return undefined;
  }
}
