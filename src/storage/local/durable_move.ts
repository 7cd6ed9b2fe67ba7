import { dice, files } from "../../runtime/current.ts";

/**
 * Moves a file. After a power cut either the whole file is at `to`, or nothing new. It syncs the
 * bytes before the name exists, and the folder of the name after.
 */
export async function moveDurably(from: string, to: string): Promise<void> {
  try {
    await sync(from);
    await files.rename(from, to);
  } catch (error) {
    if (!isOtherFileSystem(error)) throw error;
    await copyAcross(from, to);
  }
  await sync(to.slice(0, to.lastIndexOf("/")));
}

/** Copies from a folder of temporary files that is on another file system than the store. */
async function copyAcross(from: string, to: string): Promise<void> {
  const near = `${to}.${dice.uuid()}.part`;
  try {
    await files.copyFile(from, near);
    await sync(near);
    await files.rename(near, to);
  } catch (error) {
    await files.remove(near).catch(() => undefined);
    throw error;
  }
  await files.remove(from);
}

async function sync(path: string): Promise<void> {
  using file = await files.open(path);
  await file.sync();
}

function isOtherFileSystem(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EXDEV";
}
