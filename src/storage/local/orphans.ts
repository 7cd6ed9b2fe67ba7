import { messageOf } from "../../base/failure.ts";
import type { Logger } from "../../telemetry/logger.ts";

/**
 * A growing file that nobody wrote to for so long has no writer: a stalled upstream is given up
 * after half a minute, and checking the largest NAR takes minutes. Age is what tells, since
 * another process may share the folder.
 */
const ORPHAN_AGE_MS = 60 * 60 * 1_000;

/** Removes what downloads of processes that died left behind. Failures are logged. */
export async function removeOrphans(folder: string, nowMs: number, log: Logger): Promise<void> {
  try {
    for await (const { name, isFile } of Deno.readDir(folder)) {
      if (isFile && name.endsWith(".part")) await removeIfOld(`${folder}/${name}`, nowMs, log);
    }
  } catch (error) {
    log.warn("orphans not looked for", { path: folder, error: messageOf(error) });
  }
}

async function removeIfOld(path: string, nowMs: number, log: Logger): Promise<void> {
  try {
    const { mtime, size } = await Deno.stat(path);
    if (mtime === null || nowMs - mtime.getTime() < ORPHAN_AGE_MS) return;
    await Deno.remove(path);
    log.info("orphan removed", { path, size });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    log.warn("orphan not removed", { path, error: messageOf(error) });
  }
}
