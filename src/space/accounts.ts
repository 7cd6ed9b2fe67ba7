import pLimit from "p-limit";
import { Failure, messageOf } from "../base/failure.ts";
import type { MemberId } from "../base/member_id.ts";
import type { DatabaseMeter, SpaceKeeper, SpaceLedger, Stock } from "../metadata/space_keeper.ts";
import { clock } from "../runtime/current.ts";
import { DATABASE } from "../telemetry/events.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import type { Reservation, SpaceBudget } from "./size_limit.ts";

/** Paths whose protection one transaction determines: it stops the thread for some 3 ms. */
const PROTECT_PATHS_MAX = 128;

export interface AccountsDeps {
  readonly metadata: SpaceKeeper & DatabaseMeter & GrantDeps["metadata"];
  /** This member. */
  readonly owner: MemberId;
  /** Where the other members reach it; `undefined`: nowhere. */
  readonly url?: (() => string | undefined) | undefined;
  readonly budget: SpaceBudget;
  readonly log: Logger;
}

/** Keeps the budget in line with the database, and the protection with the pins. */
export class Accounts {
  readonly #deps: AccountsDeps;
  readonly #grant: Grant;
  #refreshing: Promise<void> | undefined;
  #again = false;
  #stopped = false;
  readonly #outage;
  readonly #diskOutage;

  constructor(deps: AccountsDeps) {
    this.#deps = deps;
    this.#diskOutage = new OutageLog(deps.log, "disk-room-known");
    this.#grant = new Grant(deps);
    this.#outage = new OutageLog(deps.log, "pins-read");
  }

  get budget(): SpaceBudget {
    return this.#deps.budget;
  }

  /** Reads the stored bytes, and the reservations of other members, into the budget. */
  async observe(): Promise<Stock> {
    const { metadata, budget, owner } = this.#deps;
    const database = await metadata.databaseSize();
    const stock = await metadata.stock(owner);
    const { keptBytes, pendingBytes, protectedBytes, reservedBytes } = stock;
    budget.observe({
      usedBytes: keptBytes + pendingBytes + database.countedBytes,
      pendingBytes,
      pinnedBytes: protectedBytes,
      othersBytes: reservedBytes,
      database,
    });
    return stock;
  }

  /** Lets a limit that comes from the disk follow it. Never throws. */
  async lookAtDisk(): Promise<void> {
    const { budget, log } = this.#deps;
    try {
      await this.observe();
      await budget.limit.look(budget.usedBytes);
      this.#diskOutage.worked();
    } catch (error) {
      this.#diskOutage.failed("disk-room-unknown", { error: messageOf(error) });
      return;
    }
    if (budget.freeBytes >= 0) return;
    log.info("size limit below the used bytes: others fill the disk", {
      limit_bytes: budget.limitBytes,
      used_bytes: budget.usedBytes,
      disk_reserve_bytes: budget.limit.reserveBytes ?? 0,
    });
  }

  /** Reserves without eviction. Where the ledger refuses, the budget then shows why. */
  async take(bytes: number): Promise<Reservation | undefined> {
    const { budget } = this.#deps;
    const taken = budget.take(bytes);
    if (taken !== undefined) return taken;
    // Other members may have given room back.
    if (bytes > budget.freeBytes) await this.observe();
    if (bytes > budget.freeBytes) return undefined;
    const granted = await this.#grant.take(bytes);
    if (granted === undefined) await this.observe();
    return granted;
  }

  /** Writes the heartbeat, and gives back the bytes that no download holds. Never throws. */
  beat(): Promise<void> {
    return this.#grant.beat();
  }

  /** Tries again what failed, and ends its outage if it works. Never rejects. */
  probe(): Promise<void> {
    return this.#grant.probe();
  }

  /** Finds all that pins protect. A closure of 100,000 paths takes seconds, in small steps. */
  async protect(): Promise<void> {
    while (!this.#stopped && await this.#deps.metadata.protect(PROTECT_PATHS_MAX)) {
      await clock.pause(0);
    }
    await this.observe();
  }

  /** Runs `protect` in the background. It logs an error; the next call tries again. */
  refresh(): Promise<void> {
    this.#again = true;
    this.#refreshing ??= this.#refresh().finally(() => this.#refreshing = undefined);
    return this.#refreshing;
  }

  /** Ends the walk at its next step; the next start continues it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#refreshing;
  }

  async #refresh(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        await this.protect();
        this.#outage.worked();
      } catch (error) {
        this.#outage.failed("pins-not-read", { error: messageOf(error) });
      }
    }
  }
}

/** Maximum bytes beyond the need of a grant, so that most reservations need no transaction. */
const SLACK_BYTES_MAX = 64 << 20;

/** The same as a part of the limit, and of the free bytes: others need room too. */
const SLACK_SHARE = { limit: 1 / 64, free: 1 / 8 };

/** How long a download waits for the ledger while another process locks the database. */
const LATE_AFTER_MS = 500;

interface GrantDeps {
  readonly metadata: Pick<SpaceLedger, "reserve" | "beat">;
  /** This member. */
  readonly owner: MemberId;
  /** Where the other members reach it; `undefined`: nowhere. */
  readonly url?: (() => string | undefined) | undefined;
  readonly budget: SpaceBudget;
  readonly log: Logger;
}

/**
 * The part of the ledger that this member may give to its downloads. It grows in steps when a
 * download needs more, and shrinks to the reserved bytes with each heartbeat. One call to the
 * ledger at a time: its last answer is the grant.
 */
class Grant {
  readonly #deps: GrantDeps;
  readonly #oneAtATime = pLimit(1);
  readonly #beats;
  readonly #reservations;
  #isLate = false;

  constructor(deps: GrantDeps) {
    this.#deps = deps;
    this.#beats = new OutageLog(deps.log, "heartbeats-written");
    this.#reservations = new OutageLog(deps.log, "space-reserved");
  }

  /**
   * `undefined` where the ledger has no room. Throws where the database does not answer soon. The
   * log has the failures; a database that is slow says so itself.
   */
  async take(bytes: number): Promise<Reservation | undefined> {
    const taken = this.#deps.budget.take(bytes);
    if (taken !== undefined) return taken;
    if (this.#isLate) {
      throw new Failure("unavailable", "Cannot reserve space: the ledger is locked", {
        part: DATABASE,
      });
    }
    const taking = this.#oneAtATime(() => this.#raise(bytes));
    taking.then(() => this.#reservations.worked(), (error) => {
      this.#reservations.failed("space-not-reserved", { error: messageOf(error) });
    });
    const inTime = await clock.within(
      taking.then((reservation) => ({ reservation })),
      LATE_AFTER_MS,
    );
    if (inTime !== undefined) return inTime.reservation;
    this.#isLate = true;
    taking.then((reservation) => reservation?.[Symbol.dispose](), () => undefined)
      .finally(() => this.#isLate = false);
    throw new Failure("unavailable", "Cannot reserve space: the ledger does not answer", {
      part: DATABASE,
    });
  }

  /** Writes the heartbeat, and gives back the bytes that no download holds. Failures are logged. */
  async beat(): Promise<void> {
    try {
      await this.#oneAtATime(() => this.#beat());
      this.#beats.worked();
    } catch (error) {
      this.#beats.failed("heartbeat-not-written", { error: messageOf(error) });
    }
  }

  /** Tries to reserve again after a failure, without a download. Never rejects. */
  probe(): Promise<void> {
    return this.#reservations.probe(() =>
      this.#oneAtATime(() => this.#reserve(this.#deps.budget.ownReservedBytes))
    );
  }

  async #raise(bytes: number): Promise<Reservation | undefined> {
    const { budget } = this.#deps;
    for (let hasJoined = false;;) {
      const taken = budget.take(bytes);
      if (taken !== undefined) return taken;
      if (await this.#reserve(budget.ownReservedBytes + bytes)) continue;
      if (hasJoined) return undefined;
      // Others may have taken this member for dead, after a long pause.
      await this.#beat();
      hasJoined = true;
    }
  }

  async #reserve(neededBytes: number): Promise<boolean> {
    const { metadata, owner, budget } = this.#deps;
    const { limitBytes, freeBytes } = budget;
    const wantedBytes = neededBytes + slackBytes(limitBytes, freeBytes);
    return await this.#granted(() =>
      metadata.reserve(owner, { neededBytes, wantedBytes, limitBytes })
    );
  }

  async #beat(): Promise<void> {
    const { metadata, owner, url, budget } = this.#deps;
    const { limitBytes } = budget;
    const reservedBytes = limitBytes === Infinity ? 0 : budget.ownReservedBytes;
    // Before the ledger does: nothing is taken meanwhile that it gives back.
    budget.grant(Math.min(budget.grantedBytes, reservedBytes));
    await this.#granted(() => metadata.beat(owner, { reservedBytes, limitBytes, url: url?.() }));
  }

  async #granted(ask: () => Promise<number | undefined>): Promise<boolean> {
    const { budget } = this.#deps;
    const keptBefore = budget.keptBytes;
    const bytes = await ask();
    if (bytes === undefined) return false;
    // The answer may be older than a file that was kept meanwhile.
    budget.grant(bytes - (budget.keptBytes - keptBefore));
    return true;
  }
}

function slackBytes(limitBytes: number, freeBytes: number): number {
  const shares = [limitBytes * SLACK_SHARE.limit, freeBytes * SLACK_SHARE.free];
  return Math.max(0, Math.floor(Math.min(SLACK_BYTES_MAX, ...shares)));
}
