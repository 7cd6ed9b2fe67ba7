import { messageOf } from "../base/failure.ts";
import type { MemberId } from "../base/member_id.ts";
import type { DatabaseMeter } from "../metadata/database_size.ts";
import type { SpaceKeeper, Stock } from "../metadata/space_keeper.ts";
import { clock } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import { Grant, type GrantDeps } from "./grant.ts";
import type { Reservation, SpaceBudget } from "./space_budget.ts";

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
