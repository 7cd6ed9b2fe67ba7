import pLimit from "p-limit";
import { Notifier } from "../base/notifier.ts";
import { within } from "../base/deadline.ts";
import { messageOf } from "../base/failure.ts";
import { Accounts, type AccountsDeps } from "./accounts.ts";
import { EvictionRuns, type EvictionRunsDeps } from "./eviction_runs.ts";
import type { ActiveReads } from "./active_reads.ts";
import { Evictor, type EvictorDeps, type RunFigures } from "./evictor.ts";
import { Futility } from "./futility.ts";
import type { GcDone, GcOrder } from "./gc_event.ts";
import { type Reservation, SpaceBudget } from "./space_budget.ts";
import { Sweeper, type SweeperDeps } from "./sweeper.ts";

/**
 * Eviction goes on until this part of what pins leave free is empty, so that it does not run for
 * each request.
 */
const HEADROOM = 0.1;

/** A download waits so long for eviction; then it is streamed to its client without being kept. */
const RESERVE_WAIT_MAX_MS = 2_000;

export type SpaceDeps =
  & Omit<EvictorDeps, "budget" | "sweeper" | "accounts">
  & Omit<EvictionRunsDeps, "budget" | "evictor" | "accounts">
  & Omit<AccountsDeps, "budget">
  & SweeperDeps
  & {
    readonly reads: Pick<ActiveReads, "names" | "whenEnded">;
    /** `Infinity`: nothing is evicted by itself. */
    readonly limitBytes: number;
  };

/** Who asked for a run. */
export interface RunWatcher {
  readonly progress: (figures: RunFigures) => void;
  /** False ends the run after its batch. */
  readonly isWanted: () => boolean;
}

/** Keeps the NAR files within the limit: nothing is written that was not promised space before. */
export class Space implements AsyncDisposable {
  readonly budget: SpaceBudget;
  readonly sweeper: Sweeper;
  readonly #deps: SpaceDeps;
  readonly #accounts: Accounts;
  readonly #runs: EvictionRuns;
  readonly #notifier = new Notifier();
  readonly #oneWaiting = pLimit(1);
  #waitingBytes = 0;
  #running = false;
  readonly #futility = new Futility();

  constructor(deps: SpaceDeps) {
    this.#deps = deps;
    const budget = this.budget = new SpaceBudget(deps.limitBytes);
    const sweeper = this.sweeper = new Sweeper(deps);
    const accounts = this.#accounts = new Accounts({ ...deps, budget });
    const evictor = new Evictor({ ...deps, sweeper, accounts });
    this.#runs = new EvictionRuns({ ...deps, accounts, evictor });
    deps.reads.whenEnded(() => this.#futility.unused());
  }

  /** Reads the accounts: once before anything is reserved. */
  async open(): Promise<void> {
    await this.#accounts.observe();
  }

  /** Looks whether other hands have changed what may go. Never throws. */
  async refresh(): Promise<void> {
    const { usedBytes, pinnedBytes } = this.budget;
    await this.#accounts.refresh();
    const isSame = usedBytes === this.budget.usedBytes && pinnedBytes === this.budget.pinnedBytes;
    if (!isSame) this.changed();
    if (this.budget.freeBytes < 0) this.tidy();
  }

  /** A pin came or went, or an entry was removed: brings the budget in line. Never throws. */
  async altered(): Promise<void> {
    this.changed();
    await this.refresh();
  }

  /**
   * False where `bytes` would not fit if all went that may go, as far as is known. Evicts nothing.
   */
  mayFit(bytes: number): boolean {
    const { limitBytes, reservedBytes, pinnedBytes, freeBytes } = this.budget;
    if (bytes <= freeBytes) return true;
    return !this.#isFutile && bytes + reservedBytes + pinnedBytes <= limitBytes;
  }

  /**
   * Promises `bytes`, after eviction if need be. `undefined` when they do not fit, or not soon:
   * what cannot be kept is not worth a build's waiting. Never throws.
   */
  async reserve(bytes: number): Promise<Reservation | undefined> {
    const taken = this.budget.take(bytes);
    if (taken !== undefined) return taken;
    const { nowMs, log } = this.#deps;
    const untilMs = nowMs() + RESERVE_WAIT_MAX_MS;
    try {
      return await this.#oneWaiting(() => this.#wait(bytes, untilMs));
    } catch (error) {
      // The database is locked, say: then nothing can be kept either.
      log.error("no space made", { error: messageOf(error) });
      return undefined;
    }
  }

  /** Promises more of what is reserved already; false when it does not fit. */
  async grow(reservation: Reservation, bytes: number): Promise<boolean> {
    if (reservation.grow(bytes)) return true;
    using more = await this.reserve(bytes);
    if (more === undefined) return false;
    more[Symbol.dispose]();
    return reservation.grow(bytes);
  }

  /**
   * What was reserved is kept, and counted as such from here on. An object that it took the place
   * of goes.
   */
  async kept(reservation: Reservation): Promise<void> {
    const { pendingBytes } = await this.#accounts.observe();
    reservation[Symbol.dispose]();
    this.changed();
    if (pendingBytes === 0) return;
    await this.sweeper.sweepOwn();
    await this.#accounts.observe();
  }

  /** Something may go that could not. */
  changed(): void {
    this.#futility.changed();
  }

  /** The disk took no more, below the limit: what is used may be a part less, from now on. */
  diskFull(): void {
    if (this.#running || this.budget.limitBytes === Infinity) return;
    this.#startRun(Math.floor(this.budget.usedBytes * (1 - HEADROOM)));
  }

  /** Evicts in the background, if there is more than where eviction stops. */
  tidy(): void {
    if (this.#running || this.#isFutile || this.budget.usedBytes <= this.#lowWaterBytes) return;
    this.#startRun();
  }

  /** Evicts down to a target and tells what came of it; `undefined` where there is no target. */
  collect(order: GcOrder, { progress, isWanted }: RunWatcher): Promise<GcDone> | undefined {
    const { targetBytes = this.#lowWaterBytes } = order;
    if (targetBytes === Infinity) return undefined;
    if (order.dryRun) return this.#runs.dryRun(targetBytes);
    return this.#runs.run({ targetBytes: () => targetBytes, progress, isWanted })
      .then(({ done }) => done);
  }

  /** Ends what is under way in the background. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#runs.stop(), this.#accounts.stop()]);
  }

  get #isFutile(): boolean {
    return this.#futility.has(this.#deps.nowMs());
  }

  get #lowWaterBytes(): number {
    const { limitBytes, pinnedBytes } = this.budget;
    if (limitBytes === Infinity) return Infinity;
    return Math.floor(limitBytes - HEADROOM * Math.max(0, limitBytes - pinnedBytes));
  }

  /** One after the other, so that a run knows what it is for. */
  async #wait(bytes: number, untilMs: number): Promise<Reservation | undefined> {
    const { nowMs } = this.#deps;
    this.#waitingBytes = bytes;
    try {
      for (;;) {
        const taken = this.budget.take(bytes);
        const leftMs = untilMs - nowMs();
        if (taken !== undefined || leftMs <= 0) return taken;
        if (!this.#running) {
          if (this.#isFutile) return undefined;
          if (!await this.#couldFit(bytes, leftMs)) {
            this.#waitingBytes = 0;
            return void this.tidy();
          }
          if (!this.#running) this.#startRun();
        }
        await this.#notifier.notified(leftMs);
      }
    } finally {
      this.#waitingBytes = 0;
    }
  }

  /** False where what may not go takes too much: evicting the rest would help nobody. */
  async #couldFit(bytes: number, limitMs: number): Promise<boolean> {
    const { limitBytes } = this.budget;
    if (bytes + this.budget.reservedBytes > limitBytes) return false;
    // The walk along what is pinned goes on by itself where it takes longer.
    const known = await within(this.#accounts.refresh().then(() => true), limitMs);
    return known === true &&
      bytes + this.budget.reservedBytes + this.budget.pinnedBytes <= limitBytes;
  }

  /** Down to `atMostBytes`, and further where a download waits for more. */
  #startRun(atMostBytes = this.#lowWaterBytes): void {
    this.#running = true;
    const targetBytes = () => {
      const { limitBytes, reservedBytes } = this.budget;
      const neededBytes = limitBytes - reservedBytes - this.#waitingBytes;
      return Math.min(atMostBytes, neededBytes < 0 ? Infinity : neededBytes);
    };
    const progress = () => this.#notifier.notify();
    this.#runs.run({ targetBytes, progress, isWanted: () => true }).then(({ done, end }) => {
      const hadBusy = done.busyBytes > 0;
      this.#futility.ended(end, { hadBusy, nowMs: this.#deps.nowMs() });
      this.#running = false;
      this.#notifier.notify();
    });
  }
}
