import type { Seal } from "../../nix/stored_name.ts";

/**
 * The identity of a file, and of its last change. Deno gives the times: milliseconds of the last
 * write, whole seconds of the last change of any kind, which nobody can set back.
 */
export function sealOf({ ino, size, mtime, ctime }: Deno.FileInfo): Seal {
  const times = `${mtime?.getTime() ?? 0}-${ctime?.getTime() ?? 0}`;
  return `${ino ?? 0}-${size}-${times}` as Seal;
}
