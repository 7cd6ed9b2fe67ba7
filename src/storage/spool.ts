import type { MemberId } from "../base/member_id.ts";

/**
 * The end of the name of a whole file, which has the announced file hash and waits for the check of
 * its NAR. It outlives its process.
 */
export const RECEIVED_SUFFIX = ".received";

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
