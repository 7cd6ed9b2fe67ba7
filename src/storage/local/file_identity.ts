import type { FileIdentity } from "../nar_store.ts";

/**
 * Times are as Deno tells them: milliseconds of the last write, whole seconds of the last change
 * of any kind, which nobody can set back.
 */
export function identityOf({ ino, size, mtime, ctime }: Deno.FileInfo): FileIdentity {
  return {
    inode: ino ?? 0,
    fileSize: size,
    modifiedAtMs: mtime?.getTime() ?? 0,
    changedAtMs: ctime?.getTime() ?? 0,
  };
}
