import { messageOf } from "../../base/failure.ts";
import { type MemberId, NOBODY } from "../../base/member_id.ts";
import type { SpaceLedger } from "../../metadata/space_keeper.ts";
import { clock } from "../../runtime/current.ts";
import { isDead } from "../../space/recover.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { hasEnded } from "./ended_process.ts";

const CHECK_EVERY_MS = 500;

/** A member that is silent for so long is dead, unless a clock was set back. */
const CHECKS_MAX = 60;

/** Joins the members; the result leaves them. While the database is locked, heartbeats do it. */
export async function joinMembers(
  ledger: Pick<SpaceLedger, "beat" | "leave">,
  member: MemberId,
  log: Logger,
): Promise<AsyncDisposable> {
  const warn = (error: unknown) => log.event("member-not-registered", { error: messageOf(error) });
  await ledger.beat(member, { reservedBytes: 0, limitBytes: Infinity }).catch(warn);
  return { [Symbol.asyncDispose]: () => ledger.leave(member).catch(warn) };
}

/**
 * Waits for a heartbeat of any member but `self`. `undefined`: all others are dead. A member that
 * was killed a moment ago is no reason to refuse a start.
 */
export async function livingMember(
  ledger: Pick<SpaceLedger, "members">,
  self: MemberId = NOBODY,
  everyMs = CHECK_EVERY_MS,
): Promise<MemberId | undefined> {
  const silences = new Map<MemberId, number>();
  for (let check = 0; check < CHECKS_MAX; check++) {
    // The clock measures silence for NOBODY: this process may have written no heartbeat yet.
    const others = (await ledger.members(NOBODY))
      .filter((member) => member.id !== self && !isDead(member, hasEnded));
    if (others.length === 0) return undefined;
    const living = others.find(({ id, silentMs }) => silentMs < (silences.get(id) ?? 0));
    if (living !== undefined) return living.id;
    for (const { id, silentMs } of others) silences.set(id, silentMs);
    await clock.pause(everyMs);
  }
  return undefined;
}
