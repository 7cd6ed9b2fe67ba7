import type { Seal } from "../../nix/stored_name.ts";

/**
 * Which file it is, and how it was last changed. Times are as Deno tells them: milliseconds of the
 * last write, whole seconds of the last change of any kind, which nobody can set back.
 */
export function sealOf({ ino, size, mtime, ctime }: Deno.FileInfo): Seal {
  const times = `${mtime?.getTime() ?? 0}-${ctime?.getTime() ?? 0}`;
  return `${ino ?? 0}-${size}-${times}` as Seal;
}
