import type { MemberId } from "../base/member_id.ts";
import { files } from "../runtime/current.ts";

/**
 * The end of the name of a whole file, which has the announced file hash and waits for the check of
 * its NAR. It outlives its process.
 */
export const RECEIVED_SUFFIX = ".received";

/**
 * A new partial file in a member's folder; its path. Others that take the member for dead, because
 * the database hangs for it, remove that folder again and again.
 */
export function makePartialFile(folder: string, prefix: string): string {
  const options = { dir: folder, prefix, suffix: ".part" };
  try {
    return files.makeTempFileSync(options);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    files.mkdirSync(folder, { recursive: true });
    return files.makeTempFileSync(options);
  }
}

/** The temporary files of this machine: each member has a folder of its own for partial files. */
export interface Spool {
  /** The other members with a folder here, dead or alive. */
  others(): readonly MemberId[];
  /**
   * Takes over the whole files of a dead member, and removes its folder. False where something of
   * it is left.
   */
  remove(member: MemberId): boolean;
}
