import { statfs } from "node:fs/promises";
import type { DiskRoom, Files } from "./files.ts";

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
  await requireStatfs();
  const { bavail, blocks, bsize, ffree, files } = await statfs(path);
  return {
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    files: files > 0 ? { free: ffree, total: files } : undefined,
  };
}

/** Throws without `--allow-sys=statfs`. Otherwise Deno would prompt the user. */
async function requireStatfs(): Promise<void> {
  const descriptor = { name: "sys", kind: "statfs" } as unknown as Deno.SysPermissionDescriptor;
  const { state } = await Deno.permissions.query(descriptor);
  if (state !== "granted") throw new Error("--allow-sys=statfs is not given");
}
