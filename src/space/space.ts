import pLimit from "p-limit";
import { Notifier } from "../base/notifier.ts";
import { messageOf } from "../base/failure.ts";
import { clock } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Accounts } from "./accounts.ts";
import type { ActiveReads } from "./active_reads.ts";
import { type EvictionRuns, FailedRuns } from "./eviction_runs.ts";
import type { RunFigures } from "./evictor.ts";
import type { GcDone, GcOrder } from "./gc_event.ts";
import { Loan } from "./loan.ts";
import type { Reservation, SpaceBudget } from "./size_limit.ts";
import type { SpareRoom } from "./spare_room.ts";
import type { Sweeper } from "./sweeper.ts";

/** The part of the space beside pins that a run frees, so that few requests need a run. */
const HEADROOM = 0.1;

/** The longest wait of a download for eviction; after it the NAR passes through. */
const RESERVE_WAIT_MAX_MS = 2_000;

export interface SpaceDeps {
  readonly accounts: Accounts;
  readonly sweeper: Sweeper;
  readonly runs: EvictionRuns;
  readonly spare: SpareRoom;
  readonly reads: Pick<ActiveReads, "whenEnded">;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** How long a reservation waits that the ledger refused, although it should fit by the budget. */
const REFUSED_PAUSE_MS = 50;

/** The caller that requested a run. */
export interface RunWatcher {
  readonly progress: (figures: RunFigures) => void;
  /** False ends the run after its batch. */
  readonly isWanted: () => boolean;
}

/** Keeps the NAR files within the limit: a write needs a reservation. */
export class Space implements AsyncDisposable {
  readonly budget: SpaceBudget;
  readonly sweeper: Sweeper;
  readonly #deps: SpaceDeps;
  readonly #accounts: Accounts;
  readonly #runs: EvictionRuns;
  readonly #notifier = new Notifier();
  readonly #oneWaiting = pLimit(1);
  readonly #failedRuns = new FailedRuns();
  readonly #loans = new Map<Loan, number>();
  #waitingBytes = 0;
  readonly #oneSweep = pLimit(1);
  /** The sweep that has not begun yet. */
  #nextSweep: Promise<unknown> | undefined;
  #running = false;
  #ledgerFailure: string | undefined;

  constructor(deps: SpaceDeps) {
    this.#deps = deps;
    this.#accounts = deps.accounts;
    this.#runs = deps.runs;
    this.budget = deps.accounts.budget;
    this.sweeper = deps.sweeper;
    deps.reads.whenEnded(() => this.#failedRuns.unused());
  }

  /** Joins the members, and reads the accounts; call it before the first reservation. */
  async open(): Promise<void> {
    if (this.budget.limit.isOfDisk) await this.#accounts.lookAtDisk();
    await this.beat();
    await this.#accounts.observe();
  }

  /** Lets a limit that comes from the disk follow it: evicts where others fill it. Never throws. */
  async lookAtDisk(): Promise<void> {
    if (!this.budget.limit.isOfDisk) return;
    await this.#accounts.lookAtDisk();
    if (this.budget.freeBytes < 0) this.tidy();
  }

  /** Writes this member's heartbeat, and gives back unused bytes. Never throws. */
  async beat(): Promise<void> {
    await this.#accounts.beat();
  }

  /** Tries again what failed, and ends its outage if it works. Never rejects. */
  async probe(): Promise<void> {
    await this.#accounts.probe();
  }

  /** Reads the changes of other processes into the accounts. Never throws. */
  async refresh(): Promise<void> {
    await this.#accounts.refresh();
    this.#runs.usageObserved();
    if (this.budget.freeBytes < 0) this.tidy();
  }

  /** Call it after a pin or an entry was added or removed. Never throws. */
  async altered(): Promise<void> {
    this.changed();
    await this.refresh();
  }

  /** Why the database gave no answer to the last reservation; `undefined`: it did. */
  get ledgerFailure(): string | undefined {
    return this.#ledgerFailure;
  }

  /** False where `bytes` would not fit even after every possible eviction. Evicts nothing. */
  mayFit(bytes: number): boolean {
    const { limitBytes, reservedBytes, pinnedBytes, freeBytes } = this.budget;
    if (bytes <= freeBytes + this.#lentBytes) return true;
    return !this.#wouldFreeNothing &&
      bytes + reservedBytes - this.#lentBytes + pinnedBytes <= limitBytes;
  }

  /** The same after a look at the pins of this moment. Never throws. */
  async fits(bytes: number): Promise<boolean> {
    if (bytes <= this.budget.freeBytes + this.#lentBytes) return true;
    // What is lent comes back.
    const neededBytes = bytes - this.#lentBytes;
    return !this.#wouldFreeNothing && await this.#couldFit(neededBytes, RESERVE_WAIT_MAX_MS);
  }

  /**
   * Reserves `bytes`, after eviction if needed. `undefined` when they do not fit within 2 s: a
   * build should not wait longer. Never throws.
   */
  async reserve(bytes: number): Promise<Reservation | undefined> {
    const untilMs = this.#deps.nowMs() + RESERVE_WAIT_MAX_MS;
    return await this.#ask("no space reserved", async () =>
      await this.#take(bytes) ??
        await this.#oneWaiting(() => this.#wait(bytes, untilMs)));
  }

  /**
   * Lends free room for work that nobody waits for, and evicts nothing for it. Once another caller
   * needs the room, the loan's signal fires. `undefined` when it does not fit. Never throws.
   */
  async lend(bytes: number): Promise<Loan | undefined> {
    const reservation = await this.#ask("no space lent", () => this.#accounts.take(bytes));
    if (reservation === undefined) return undefined;
    const loan = new Loan(reservation, () => this.#loans.delete(loan));
    this.#loans.set(loan, bytes);
    return loan;
  }

  /**
   * Reserves `bytes` for a prefetch: larder evicts no entry for them that was used within the hour.
   * `undefined` when they do not fit. Never throws.
   */
  async reserveSpare(bytes: number): Promise<Reservation | undefined> {
    return await this.#ask("no spare space reserved", async () => {
      const taken = await this.#take(bytes);
      if (taken !== undefined || !await this.hasSpare(bytes)) return taken;
      await this.#runs.run({
        targetBytes: () => this.budget.limitBytes - this.budget.reservedBytes - bytes,
        usedBeforeMs: this.#deps.spare.usedBeforeMs(),
        progress: () => this.#notifier.notify(),
        isWanted: () => true,
      });
      return await this.#accounts.take(bytes);
    });
  }

  /** True if `reserveSpare` could promise `bytes`, as far as is known. Never throws. */
  async hasSpare(bytes: number): Promise<boolean> {
    const { freeBytes } = this.budget;
    if (bytes <= freeBytes) return true;
    if (!this.mayFit(bytes)) return false;
    try {
      return freeBytes + await this.#deps.spare.bytes() >= bytes;
    } catch (error) {
      this.#deps.log.debug("no spare space found", { error: messageOf(error) });
      return false;
    }
  }

  /** Adds `bytes` to a reservation; false when they do not fit. */
  grow(reservation: Reservation, bytes: number): Promise<boolean> {
    return growBy(reservation, bytes, () => this.reserve(bytes));
  }

  /** The same for a prefetch. */
  growSpare(reservation: Reservation, bytes: number): Promise<boolean> {
    return growBy(reservation, bytes, () => this.reserveSpare(bytes));
  }

  /**
   * Counts a reserved file as used from now on: its row is written, and its reservation has left
   * the ledger with it. Removes the object that it replaced.
   */
  async kept(reservation: Reservation): Promise<void> {
    const observing = this.#accounts.observe().finally(() => reservation.kept());
    const { pendingBytes } = await observing;
    this.changed();
    if (pendingBytes === 0) return;
    // One for all that come before it begins: an outage leaves much to sweep.
    this.#nextSweep ??= this.#oneSweep(() => {
      this.#nextSweep = undefined;
      return this.sweeper.sweepOwn();
    });
    await this.#nextSweep;
    await this.#accounts.observe();
  }

  /** Call it when an entry may be evicted that could not be before. */
  changed(): void {
    this.#failedRuns.changed();
  }

  /** The disk is full below the limit: evicts a part of the used bytes, if that frees this disk. */
  diskFull(): void {
    if (this.#running || this.#wouldFreeNothing || this.budget.limitBytes === Infinity) return;
    if (!this.sweeper.freesThisDisk) return;
    this.#startRun(Math.floor(this.budget.usedBytes * (1 - HEADROOM)));
  }

  /** Evicts in the background, if the used bytes exceed the target. */
  tidy(): void {
    if (this.#running || this.#wouldFreeNothing || this.budget.usedBytes <= this.#lowWaterBytes) {
      return;
    }
    this.#startRun();
  }

  /**
   * Evicts down to a target, and resolves to the outcome. `undefined` without a target. Rejects
   * where the run fails.
   */
  collect(order: GcOrder, { progress, isWanted }: RunWatcher): Promise<GcDone> | undefined {
    const { targetBytes = this.#lowWaterBytes } = order;
    if (targetBytes === Infinity) return undefined;
    if (order.dryRun) return this.#runs.dryRun(targetBytes);
    const run = { targetBytes: () => targetBytes, isRequested: true, progress, isWanted } as const;
    return this.#runs.run(run).then(({ done, failure }) => {
      if (failure !== undefined) throw failure;
      return done;
    });
  }

  /** Ends the work in the background. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#runs.stop(), this.#accounts.stop()]);
  }

  get #wouldFreeNothing(): boolean {
    return this.#failedRuns.has(this.#deps.nowMs(), this.budget.seen);
  }

  get #lowWaterBytes(): number {
    const { limitBytes, pinnedBytes } = this.budget;
    if (limitBytes === Infinity) return Infinity;
    return Math.floor(limitBytes - HEADROOM * Math.max(0, limitBytes - pinnedBytes));
  }

  get #lentBytes(): number {
    return this.#loans.values().reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Without eviction. Calls in what is lent, where nothing else is free. */
  async #take(bytes: number): Promise<Reservation | undefined> {
    const taken = await this.#accounts.take(bytes);
    if (taken !== undefined || this.#loans.size === 0) return taken;
    const over = Promise.all([...this.#loans.keys()].map((loan) => loan.callIn()));
    await clock.within(over, RESERVE_WAIT_MAX_MS);
    return await this.#accounts.take(bytes);
  }

  /** A locked database, for example, could not record a kept file either: `undefined`. */
  async #ask(
    message: string,
    reserve: () => Promise<Reservation | undefined>,
  ): Promise<Reservation | undefined> {
    try {
      const reservation = await reserve();
      this.#ledgerFailure = undefined;
      return reservation;
    } catch (error) {
      this.#ledgerFailure = messageOf(error);
      this.#deps.log.debug(message, { error: this.#ledgerFailure });
      return undefined;
    }
  }

  /** Call it one at a time: a run makes room for one reservation. */
  async #wait(bytes: number, untilMs: number): Promise<Reservation | undefined> {
    const { nowMs } = this.#deps;
    this.#waitingBytes = bytes;
    try {
      for (;;) {
        const taken = await this.#accounts.take(bytes);
        const leftMs = untilMs - nowMs();
        if (taken !== undefined || leftMs <= 0) return taken;
        if (bytes <= this.budget.freeBytes) {
          await this.#notifier.notified(Math.min(leftMs, REFUSED_PAUSE_MS));
          continue;
        }
        if (!this.#running) {
          if (this.#wouldFreeNothing) return undefined;
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

  /** False where protected bytes leave too little room: evicting the rest would not help. */
  async #couldFit(bytes: number, limitMs: number): Promise<boolean> {
    const { limitBytes } = this.budget;
    if (bytes + this.budget.reservedBytes > limitBytes) return false;
    // A walk along the pins that takes longer continues in the background.
    const known = await clock.within(this.#accounts.refresh().then(() => true), limitMs);
    return known === true &&
      bytes + this.budget.reservedBytes + this.budget.pinnedBytes <= limitBytes;
  }

  /** Evicts to `atMostBytes`, and further where a download waits for more. */
  #startRun(atMostBytes = this.#lowWaterBytes): void {
    this.#running = true;
    const targetBytes = () => {
      const { limitBytes, reservedBytes } = this.budget;
      const neededBytes = limitBytes - reservedBytes - this.#waitingBytes;
      return Math.min(atMostBytes, neededBytes < 0 ? Infinity : neededBytes);
    };
    const progress = () => this.#notifier.notify();
    this.#runs.run({ targetBytes, progress, isWanted: () => true }).then(({ done, end, seen }) => {
      const hadBusy = done.busyBytes > 0;
      this.#failedRuns.ended(end, { hadBusy, nowMs: this.#deps.nowMs(), seen });
      this.#running = false;
      this.#notifier.notify();
    });
  }
}

async function growBy(
  reservation: Reservation,
  bytes: number,
  reserve: () => Promise<Reservation | undefined>,
): Promise<boolean> {
  if (reservation.grow(bytes)) return true;
  using more = await reserve();
  if (more === undefined) return false;
  more[Symbol.dispose]();
  return reservation.grow(bytes);
}
