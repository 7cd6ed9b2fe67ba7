import type { Seal } from "../../nix/stored_name.ts";
import type { FileFacts } from "../../runtime/files.ts";

/**
 * The identity of a file, and of its last change. Deno gives two times: the last write in
 * milliseconds, and the last change of any kind (ctime), which no program can set, in seconds.
 */
export function sealOf({ ino, size, mtime, ctime }: FileFacts): Seal {
  const times = `${mtime?.getTime() ?? 0}-${ctime?.getTime() ?? 0}`;
  return `${ino ?? 0}-${size}-${times}` as Seal;
}
