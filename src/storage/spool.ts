import type { MemberId } from "../base/member_id.ts";

/** The temporary files of this machine: each member has a folder of its own for partial files. */
export interface Spool {
  /** The other members with a folder here, dead or alive. */
  others(): readonly MemberId[];
  /** Removes the folder of a dead member. False where something of it is left. */
  remove(member: MemberId): boolean;
}
