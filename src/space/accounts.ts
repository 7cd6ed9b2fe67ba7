import { messageOf } from "../base/failure.ts";
import { pause } from "../base/pause.ts";
import type { SpaceKeeper, Stock } from "../metadata/space_keeper.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type OutageLine, OutageLog } from "../telemetry/outage_log.ts";
import type { SpaceBudget } from "./space_budget.ts";

/** Paths whose protection one transaction determines: it stops the thread for some 3 ms. */
const PROTECT_PATHS_MAX = 128;

const PINS_NOT_READ: OutageLine = { level: "warn", message: "reading pins failed" };

export interface AccountsDeps {
  readonly metadata: SpaceKeeper;
  readonly budget: SpaceBudget;
  /** Bytes of files that other processes download, or left behind. */
  readonly foreignBytes: () => number;
  readonly log: Logger;
}

/** Keeps the budget in line with the stored bytes, and the protection with the pins. */
export class Accounts {
  readonly #deps: AccountsDeps;
  #refreshing: Promise<void> | undefined;
  #again = false;
  #stopped = false;
  readonly #outage: OutageLog;

  constructor(deps: AccountsDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "pins are read again");
  }

  get budget(): SpaceBudget {
    return this.#deps.budget;
  }

  /** Reads the stored bytes into the budget. */
  async observe(): Promise<Stock> {
    const { metadata, budget, foreignBytes } = this.#deps;
    const stock = await metadata.stock();
    const { keptBytes, pendingBytes, protectedBytes } = stock;
    budget.observe(keptBytes + pendingBytes + foreignBytes(), protectedBytes);
    return stock;
  }

  /** Finds all that pins protect. A closure of 100,000 paths takes seconds, in small steps. */
  async protect(): Promise<void> {
    while (!this.#stopped && await this.#deps.metadata.protect(PROTECT_PATHS_MAX)) await pause(0);
    await this.observe();
  }

  /** Runs `protect` in the background. An error is logged; the next call tries again. */
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
        this.#outage.failed(PINS_NOT_READ, { error: messageOf(error) });
      }
    }
  }
}
