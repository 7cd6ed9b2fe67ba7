import { statfs } from "node:fs/promises";
import type { DiskRoom, Files } from "./files.ts";
import { hasSystemPermission } from "./system_permission.ts";

/** The file system of this machine. */
export const SYSTEM_FILES: Files = {
  openSync: Deno.openSync,
  open: Deno.open,
  statSync: Deno.statSync,
  stat: Deno.stat,
  readDirSync: Deno.readDirSync,
  mkdirSync: Deno.mkdirSync,
  mkdir: Deno.mkdir,
  makeTempFileSync: Deno.makeTempFileSync,
  renameSync: Deno.renameSync,
  rename: Deno.rename,
  linkSync: Deno.linkSync,
  link: Deno.link,
  copyFile: Deno.copyFile,
  removeSync: Deno.removeSync,
  remove: Deno.remove,
  readTextFile: Deno.readTextFile,
  writeTextFile: Deno.writeTextFile,
  room: roomOf,
};

async function roomOf(path: string): Promise<DiskRoom> {
  if (!hasSystemPermission("statfs")) throw new Error("--allow-sys=statfs is not given");
  const { bavail, blocks, bsize, ffree, files } = await statfs(path);
  return {
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    files: files > 0 ? { free: ffree, total: files } : undefined,
  };
}
