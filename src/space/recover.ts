import { Failure, messageOf } from "../base/failure.ts";
import { type MemberId, NOBODY } from "../base/member_id.ts";
import { type ChangeWriter, IntentLost } from "../metadata/metadata_store.ts";
import type { Member, PendingFile, SpaceKeeper, SpaceLedger } from "../metadata/space_keeper.ts";
import type { StoredName } from "../nix/stored_name.ts";
import type { NarWriter } from "../storage/nar_store.ts";
import type { Spool } from "../storage/spool.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";

/** The time between two heartbeats of a member. */
export const BEAT_EVERY_MS = 5_000;

/** The silence after which a member is dead: six heartbeats did not come. */
const DEAD_AFTER_MS = 30_000;

/** The same for one whose process is not there: it may run in a container of the same host name. */
const ENDED_AFTER_MS = 10_000;

type SettlingOutage = OutageLog<"nars-settled">;

export interface RecoverDeps {
  readonly metadata:
    & Pick<SpaceKeeper, "pendingFiles">
    & Pick<SpaceLedger, "members" | "leave">
    & ChangeWriter;
  readonly nars: Pick<NarWriter, "remove">;
  readonly spool: Spool;
  /** This process. */
  readonly member: MemberId;
  /** True where this process sees none of the member's; default: it cannot look. */
  readonly hasEnded?: (member: MemberId) => boolean;
  /** True while this process publishes the object; default: it always does. */
  readonly isPublishing?: (at: StoredName) => boolean;
  readonly log: Logger;
  /** Outage of all calls of this process; default: each call logs its failures. */
  readonly outage?: SettlingOutage;
}

/** True for a member that is silent for too long, or whose process is not there. */
export function isDead(
  { id, silentMs }: Member,
  hasEnded: (member: MemberId) => boolean,
): boolean {
  return silentMs >= ENDED_AFTER_MS && (silentMs >= DEAD_AFTER_MS || hasEnded(id));
}

/** The log of objects that dead members left, and that cannot be removed. */
export function settlingOutage(log: Logger): SettlingOutage {
  return new OutageLog(log, "nars-settled");
}

/**
 * Removes the remains of dead members, and those of own publishings that ended while the database
 * was away: pending objects, which no row keeps, then folders on this machine, then reservations.
 * Afterwards every counted file exists, and every existing file is counted. Reads only the pending
 * rows, never the list of all files.
 */
export async function recover(deps: RecoverDeps): Promise<void> {
  const { metadata, spool, member, hasEnded = () => false, log } = deps;
  const { isPublishing = () => true } = deps;
  const { outage = settlingOutage(log) } = deps;
  const pending = await metadata.pendingFiles();
  const folders = spool.others();
  // Read last: the owners of all these had joined before.
  const members = await metadata.members(member);
  const dead = members.filter((one) => one.id !== member && isDead(one, hasEnded));
  const living = new Set(members.filter((one) => !dead.includes(one)).map(({ id }) => id));
  living.add(member);
  const notGone = new Set<MemberId>();
  // An object with a size is marked: its owner sweeps it.
  const isLeft = ({ at, owner, fileSize }: PendingFile) =>
    owner === member ? fileSize === 0 && !isPublishing(at) : !living.has(owner);
  let isAway = false;
  for (const file of pending) {
    if (!isLeft(file)) continue;
    try {
      // One call is enough to find a back end away.
      if (!isAway) await settle(deps, file);
      else notGone.add(file.owner);
    } catch (error) {
      outage.failed("nar-not-settled", { nar: file.at, error: messageOf(error) });
      isAway = error instanceof Failure && error.kind === "unavailable";
      notGone.add(file.owner);
    }
  }
  if (notGone.size === 0) outage.worked();
  for (const folder of folders) {
    if (!living.has(folder) && !spool.remove(folder)) notGone.add(folder);
  }
  for (const { id, silentMs } of dead) {
    // The bytes of a file that stays are still reserved. One of NOBODY may be this member's.
    if (notGone.has(id) || notGone.has(NOBODY)) continue;
    await metadata.leave(id);
    log.info("dead member removed", { member: id, silent_ms: silentMs });
  }
}

/** Throws where the object stays pending and counted, until the next call. */
async function settle({ nars, metadata, log }: RecoverDeps, { at }: PendingFile): Promise<void> {
  try {
    // First, so that an owner that wakes up does not keep the removed object.
    await metadata.apply([{ kind: "nar-taken", at }]);
    await nars.remove(at);
    await metadata.apply([{ kind: "nar-gone", at }]);
    log.info("interrupted nar settled", { nar: at });
  } catch (error) {
    // Its owner woke up before, or another member was faster.
    if (!(error instanceof IntentLost)) throw error;
  }
}
