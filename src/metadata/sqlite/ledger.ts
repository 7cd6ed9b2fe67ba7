import type { MemberId } from "../../base/member_id.ts";
import type { HeartbeatOrder, Member, ReserveOrder } from "../space_ledger.ts";
import { COUNTED_DATABASE_BYTES } from "./space_statements.ts";
import type { Statements } from "./statements.ts";

/**
 * The limit ?2 less all that is stored, the database included, and all that others than ?1 have
 * reserved.
 */
const ROOM = `(SELECT ?2 - kept_bytes - pending_bytes - ${COUNTED_DATABASE_BYTES} -
    (SELECT ifnull(sum(reserved_bytes), 0) FROM member WHERE id <> ?1) FROM stock)`;

/** The statements about members and their reserved bytes. */
export const LEDGER_SQL = {
  reserve: `UPDATE member SET reserved_bytes = max(reserved_bytes, ?3, min(?4, ${ROOM}))
    WHERE id = ?1 AND ?3 <= max(reserved_bytes, ${ROOM}) RETURNING reserved_bytes`,
  beat: `INSERT INTO member (id, heartbeat_at_ms, reserved_bytes, url)
    VALUES (?1, ?4, iif(?3 <= ${ROOM}, ?3, 0), ?5)
    ON CONFLICT DO UPDATE SET heartbeat_at_ms = excluded.heartbeat_at_ms, url = excluded.url,
      reserved_bytes = iif(?3 <= max(reserved_bytes, ${ROOM}), ?3, reserved_bytes)
    RETURNING reserved_bytes`,
  // After the clock was set back: heartbeats from the future would never grow old.
  ageBeats: "UPDATE member SET heartbeat_at_ms = ?1 WHERE heartbeat_at_ms > ?1",
  members: `SELECT id, url, min(?2, ifnull((SELECT heartbeat_at_ms FROM member WHERE id = ?1), ?2))
      - heartbeat_at_ms AS silent_ms FROM member ORDER BY id`,
  leave: "DELETE FROM member WHERE id = ?",
  /** Ends the reservation of a file that is kept now: its bytes are stored. */
  unreserve: `UPDATE member SET reserved_bytes = reserved_bytes - ?1
    WHERE id = ?2 AND reserved_bytes >= ?1`,
} as const;

/** The members and their reserved bytes. Call each function within a transaction. */
export class Ledger {
  readonly #statements: Statements;
  readonly #nowMs: () => number;

  constructor(statements: Statements, nowMs: () => number) {
    this.#statements = statements;
    this.#nowMs = nowMs;
  }

  reserve(
    member: MemberId,
    { neededBytes, wantedBytes, limitBytes }: ReserveOrder,
  ): number | undefined {
    const row = this.#statements.reserve.get(member, limitBytes, neededBytes, wantedBytes);
    return row && Number(row["reserved_bytes"]);
  }

  beat(member: MemberId, { reservedBytes, limitBytes, url }: HeartbeatOrder): number {
    const nowMs = this.#nowMs();
    this.#statements.ageBeats.run(nowMs);
    const row = this.#statements.beat.get(member, limitBytes, reservedBytes, nowMs, url ?? null);
    return Number(row?.["reserved_bytes"]);
  }

  members(observer: MemberId): readonly Member[] {
    return this.#statements.members.all(observer, this.#nowMs())
      .map(({ id, silent_ms, url }) => ({
        ...{ id: String(id), silentMs: Math.max(0, Number(silent_ms)) },
        ...(url === null ? {} : { url: String(url) }),
      }));
  }

  leave(member: MemberId): void {
    this.#statements.leave.run(member);
  }
}
