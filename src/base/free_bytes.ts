import { statfs } from "node:fs/promises";

/**
 * The free bytes of the file system of `path`. Throws where that is unknown: without
 * `--allow-sys=statfs`, for example.
 */
export async function freeBytesOf(path: string): Promise<number> {
  await requireStatfs();
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** Throws without permission. Otherwise Deno would prompt the user. */
async function requireStatfs(): Promise<void> {
  const descriptor = { name: "sys", kind: "statfs" } as unknown as Deno.SysPermissionDescriptor;
  const { state } = await Deno.permissions.query(descriptor);
  if (state !== "granted") throw new Error("--allow-sys=statfs is not given");
}
