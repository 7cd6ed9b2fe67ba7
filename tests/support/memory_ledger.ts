import type { MemberId } from "../../src/base/member_id.ts";
import type { HeartbeatOrder, Member, ReserveOrder } from "../../src/metadata/space_keeper.ts";
import { stockOf, type Tables } from "./memory_tables.ts";

/** A member as a map holds it. */
export interface MemberRow {
  readonly heartbeatAtMs: number;
  readonly reservedBytes: number;
  readonly url?: string | undefined;
}

export function reserve(
  tables: Tables,
  member: MemberId,
  { neededBytes, wantedBytes, limitBytes }: ReserveOrder,
): number | undefined {
  const row = tables.members.get(member);
  const room = roomFor(tables, member, limitBytes);
  if (row === undefined || neededBytes > Math.max(row.reservedBytes, room)) return undefined;
  const reservedBytes = Math.max(row.reservedBytes, neededBytes, Math.min(wantedBytes, room));
  tables.members.set(member, { ...row, reservedBytes });
  return reservedBytes;
}

export function beat(
  tables: Tables,
  member: MemberId,
  { reservedBytes: wantedBytes, limitBytes, url, nowMs }: HeartbeatOrder & {
    readonly nowMs: number;
  },
): number {
  for (const [id, row] of tables.members) {
    tables.members.set(id, { ...row, heartbeatAtMs: Math.min(row.heartbeatAtMs, nowMs) });
  }
  const before = tables.members.get(member)?.reservedBytes ?? 0;
  const isMet = wantedBytes <= Math.max(before, roomFor(tables, member, limitBytes));
  const reservedBytes = isMet ? wantedBytes : before;
  tables.members.set(member, { heartbeatAtMs: nowMs, reservedBytes, url });
  return reservedBytes;
}

export function membersOf(
  { members }: Tables,
  observer: MemberId,
  nowMs: number,
): readonly Member[] {
  const seenAtMs = Math.min(nowMs, members.get(observer)?.heartbeatAtMs ?? nowMs);
  return [...members].sort(([a], [b]) => a < b ? -1 : 1)
    .map(([id, { heartbeatAtMs, url }]) => ({
      ...{ id, silentMs: Math.max(0, seenAtMs - heartbeatAtMs) },
      ...(url === undefined ? {} : { url }),
    }));
}

/** Of all members but `except`. */
export function reservedBytesOf({ members }: Tables, except?: MemberId): number {
  return [...members].reduce((sum, [id, row]) => sum + (id === except ? 0 : row.reservedBytes), 0);
}

/** False where the member has not reserved so many bytes. */
export function unreserve({ members }: Tables, owner: MemberId, bytes = 0): boolean {
  const row = members.get(owner);
  if (row === undefined || row.reservedBytes < bytes) return bytes === 0;
  members.set(owner, { ...row, reservedBytes: row.reservedBytes - bytes });
  return true;
}

function roomFor(tables: Tables, member: MemberId, limitBytes: number): number {
  const { keptBytes, pendingBytes, reservedBytes } = stockOf(tables, member);
  return limitBytes - keptBytes - pendingBytes - reservedBytes;
}
