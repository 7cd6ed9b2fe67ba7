import { isOfHost, type MemberId } from "../base/member_id.ts";
import type { SpaceLedger } from "../metadata/space_ledger.ts";
import { BEAT_EVERY_MS } from "../space/recover.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface SharedFileWatchDeps {
  readonly ledger: Pick<SpaceLedger, "members">;
  /** This process, on `hostname`. */
  readonly member: MemberId;
  readonly hostname: string;
  /** Never set back. */
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "event">;
}

/**
 * Warns once if a larder of another host uses this SQLite file. Containers of one machine may. Over
 * a network SQLite's locks do not hold.
 */
export class SharedFileWatch {
  readonly #deps: SharedFileWatchDeps;
  readonly #startedAtMs: number;
  #hasWarned = false;

  constructor(deps: SharedFileWatchDeps) {
    this.#deps = deps;
    this.#startedAtMs = deps.nowMs();
  }

  async warnIfShared(): Promise<void> {
    if (this.#hasWarned) return;
    const { ledger, member, hostname, nowMs, log } = this.#deps;
    const members = await ledger.members(member);
    // A heartbeat from before the start may be of one that has died. Silence is measured from this
    // member's own last heartbeat.
    const lately = nowMs() - this.#startedAtMs - BEAT_EVERY_MS;
    const other = members.find(({ id, silentMs }) => silentMs < lately && !isOfHost(hostname, id));
    if (other === undefined) return;
    this.#hasWarned = true;
    log.event("sqlite-file-shared", { member: other.id });
  }
}
