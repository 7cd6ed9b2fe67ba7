import { statfs } from "node:fs/promises";

/** The room of a file system. */
export interface DiskRoom {
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** `undefined`: the file system has no fixed number of files, as with btrfs. */
  readonly files: { readonly free: number; readonly total: number } | undefined;
}

/**
 * The free bytes of the file system of `path`. Throws where that is unknown: without
 * `--allow-sys=statfs`, for example.
 */
export async function freeBytesOf(path: string): Promise<number> {
  return (await diskRoomOf(path)).freeBytes;
}

/** The same, with the number of files. */
export async function diskRoomOf(path: string): Promise<DiskRoom> {
  await requireStatfs();
  const { bavail, blocks, bsize, ffree, files } = await statfs(path);
  return {
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    files: files > 0 ? { free: ffree, total: files } : undefined,
  };
}

/** Throws without permission. Otherwise Deno would prompt the user. */
async function requireStatfs(): Promise<void> {
  const descriptor = { name: "sys", kind: "statfs" } as unknown as Deno.SysPermissionDescriptor;
  const { state } = await Deno.permissions.query(descriptor);
  if (state !== "granted") throw new Error("--allow-sys=statfs is not given");
}
