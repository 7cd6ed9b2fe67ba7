import type { MemberId } from "../base/member_id.ts";

/** A process that shares the storage. */
export interface Member {
  readonly id: MemberId;
  /** The time from its last heartbeat to the last one of the member that asks. */
  readonly silentMs: number;
  /** Where the other members reach it; `undefined`: nowhere. */
  readonly url?: string;
}

export interface ReserveOrder {
  /** All bytes that the member needs, those that it has reserved included. */
  readonly neededBytes: number;
  /** Reserve this many if they fit, so that the next call comes later. */
  readonly wantedBytes: number;
  /** Limit of stored and reserved bytes together. */
  readonly limitBytes: number;
}

/** The reserved bytes of a member, and its limit for stored and reserved bytes together. */
export interface HeartbeatOrder {
  readonly reservedBytes: number;
  readonly limitBytes: number;
  /** Where the other members reach it; `undefined`: nowhere. */
  readonly url?: string | undefined;
}

/**
 * The reserved bytes of all members. Stored plus reserved bytes exceed no member's limit by its
 * own call, whatever other members do at the same time. Kept files leave the reserved bytes in the
 * transaction of their row (`nar-kept`).
 */
export interface SpaceLedger {
  /**
   * Raises the member's reserved bytes to `neededBytes` at least, in one transaction. Resolves to
   * its reserved bytes. `undefined`, without a change: they do not fit, or no such member is there.
   */
  reserve(member: MemberId, order: ReserveOrder): Promise<number | undefined>;

  /**
   * Writes a heartbeat, and sets the member's reserved bytes to those of `order`. Adds an absent
   * member. Bytes that are more than before, and do not fit, stay unreserved. Resolves to the
   * member's reserved bytes.
   */
  beat(member: MemberId, order: HeartbeatOrder): Promise<number>;

  /**
   * All members. The last heartbeat of `observer` measures their silence, not the clock: a locked
   * database, a suspended machine or a clock that jumps silences nobody.
   */
  members(observer: MemberId): Promise<readonly Member[]>;

  /** Removes a member, and gives back its reserved bytes. */
  leave(member: MemberId): Promise<void>;
}
