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

/**
 * Time from a ctime's second until each change has another ctime. It is twice as long as that
 * second, for file systems with coarser clocks.
 */
const SETTLES_IN_MS = 2_000;

/**
 * How long a change of the file may still leave its seal as it is: its writer can set the time of
 * the write. A wait of the longest time is enough even where the file system's clock is ahead.
 */
export function unsettledMsOf({ ctime }: Pick<Deno.FileInfo, "ctime">, nowMs: number): number {
  const settlesAtMs = (ctime?.getTime() ?? 0) + SETTLES_IN_MS;
  return Math.min(SETTLES_IN_MS, Math.max(0, settlesAtMs - nowMs));
}
