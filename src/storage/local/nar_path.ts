import type { StoredName } from "../../nix/stored_name.ts";

/** How many leading characters of the hash name a subfolder: 1,024 folders. */
export const SHARD_LENGTH = 2;

/** The path of a stored object in the folder of NAR files. */
export function narPathOf(at: StoredName): string {
  return `${at.slice(0, SHARD_LENGTH)}/${at}`;
}
