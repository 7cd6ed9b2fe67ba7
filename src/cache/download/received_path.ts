import { type NarName, parseNarName } from "../../nix/nar_name.ts";
import { RECEIVED_SUFFIX } from "../../storage/spool.ts";

const PART_REGEXP = /\.part$/;

/** The path of a whole file while the check of its NAR runs. */
export function receivedPath(path: string): string {
  return path.replace(PART_REGEXP, RECEIVED_SUFFIX);
}

/** The NAR name in such a path; `undefined` for another path. */
export function narNameOfReceived(path: string): NarName | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (!name.endsWith(RECEIVED_SUFFIX)) return undefined;
  // A random word stands between the name and the end.
  const wordAt = name.lastIndexOf(".", name.length - RECEIVED_SUFFIX.length - 1);
  return parseNarName(name.slice(0, wordAt));
}
