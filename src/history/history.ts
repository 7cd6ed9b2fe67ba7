import { messageOf } from "../base/failure.ts";
import {
  type ExpiredSlots,
  type Figure,
  type HistoryKeeper,
  type HistoryRow,
  mergedAmount,
  type Tier,
  TIERS,
} from "../metadata/history_keeper.ts";
import type { Timer } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Time between two writes: the most that a crash can lose. */
const WRITE_EVERY_MS = 60_000;

/** With other members: each reads what the others have written. */
const WRITE_WITH_OTHERS_EVERY_MS = 5_000;

/** larder counts the downloads in flight this often: a mean of thirty counts a minute. */
const COUNT_EVERY_MS = 2_000;

/** Counters since the start of this process. They only grow. */
export type Counters = Readonly<
  Record<Exclude<Figure, "stored_bytes" | "since_ms" | "in_flight_ms">, number>
>;

export interface HistoryDeps {
  readonly keeper: HistoryKeeper;
  readonly counters: () => Counters;
  readonly storedBytes: () => number;
  readonly inFlight: () => number;
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "debug">;
  /** True where other members may write to the same history. Default: false. */
  readonly hasOthers?: boolean;
}

/** The figures of a tier, the oldest slot first. */
export interface HistorySlot {
  readonly atMs: number;
  /** `undefined`: no larder has run. */
  readonly figures: Slot | undefined;
}

/** Reads the past: slots of a tier, and the sums since the first start. */
export interface HistoryReader {
  slots(tier: Tier): readonly HistorySlot[];
  /** The sum over all members since the first start. */
  lifetime(): Slot;
}

/**
 * The past of this storage in memory, and in the database once a minute, or every five
 * seconds where other members show the same figures. While the database cannot
 * be written, it grows in memory and is written later. Reading it never touches the database.
 */
export class History implements HistoryReader, AsyncDisposable {
  readonly #deps: HistoryDeps;
  /** The history in the database. */
  #stored = new Timeline();
  /** Rows not yet written. */
  #unwritten = new Timeline();
  #counted: Readonly<Partial<Record<Figure, number>>> = {};
  #inFlightMs = 0;
  #writing: Promise<void> | undefined;
  readonly #timers: Timer[] = [];
  readonly #startedAtMs: number;

  constructor(deps: HistoryDeps) {
    this.#deps = deps;
    this.#startedAtMs = deps.nowMs();
  }

  /** Reads the stored past, and keeps it up from now on. */
  async start(): Promise<void> {
    await this.#read();
    this.#timers.push(
      clock.every(
        this.#deps.hasOthers === true ? WRITE_WITH_OTHERS_EVERY_MS : WRITE_EVERY_MS,
        () => void this.write(),
      ),
      clock.every(COUNT_EVERY_MS, () => this.countInFlight()),
    );
  }

  /** Counts the downloads in flight. */
  countInFlight(): void {
    this.#inFlightMs += this.#deps.inFlight() * COUNT_EVERY_MS;
  }

  /** Writes the amounts since the last write. Never rejects. */
  write(): Promise<void> {
    return this.#writing ??= this.#write().finally(() => this.#writing = undefined);
  }

  slots(tier: Tier): readonly HistorySlot[] {
    const all = this.#timelines();
    const times = slotsUpTo(tier, this.#deps.nowMs());
    return times.map((atMs) => ({ atMs, figures: mergedSlot(all, tier, atMs) }));
  }

  lifetime(): Slot {
    const atMs = slotAt("lifetime", this.#deps.nowMs());
    return mergedSlot(this.#timelines(), "lifetime", atMs) ?? new Map();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#timers.length === 0) return;
    for (const timer of this.#timers.splice(0)) timer.cancel();
    await this.#writing;
    await this.write();
  }

  /** The past up to this moment, the oldest in front. */
  #timelines(): readonly Timeline[] {
    return [this.#stored, this.#unwritten, new Timeline(this.#since().rows)];
  }

  async #write(): Promise<void> {
    const { keeper, nowMs, log } = this.#deps;
    const { rows, counted } = this.#since();
    this.#counted = counted;
    this.#unwritten.merge(rows);
    const atMs = nowMs();
    this.#unwritten.expire(atMs);
    const written = this.#unwritten.rows();
    try {
      await keeper.recordHistory(written, expiredAt(atMs));
    } catch (error) {
      // It stays in memory, and the next minute tries again.
      log.debug("history not written", { error: messageOf(error) });
      return;
    }
    this.#stored.merge(written);
    this.#unwritten = new Timeline();
    await this.#read();
  }

  /** Other members have written, too. */
  async #read(): Promise<void> {
    const { keeper, log } = this.#deps;
    try {
      this.#stored = new Timeline(await keeper.history());
    } catch (error) {
      log.debug("history not read", { error: messageOf(error) });
    }
  }

  /** Rows of the time since the last write, and the counters up to which they go. */
  #since() {
    const nowMs = this.#deps.nowMs();
    const counted = { ...this.#deps.counters(), in_flight_ms: this.#inFlightMs };
    const grown = Object.entries(counted).flatMap(([name, value]) => {
      const amount = value - (this.#counted[name as Figure] ?? 0);
      return amount > 0 ? [[name, amount] as const] : [];
    });
    const amounts = { ...Object.fromEntries(grown), stored_bytes: this.#deps.storedBytes() };
    return { counted, rows: rowsOf({ ...amounts, since_ms: this.#startedAtMs }, nowMs) };
  }
}

/** The figures of one slot. A figure without an amount is absent. */
type Slot = ReadonlyMap<Figure, number>;

const TIER_NAMES = Object.keys(TIERS) as readonly Tier[];

/** Slots of all tiers in memory. */
export class Timeline {
  readonly #slots = new Map<Tier, Map<number, Map<Figure, number>>>(
    TIER_NAMES.map((tier) => [tier, new Map()]),
  );

  constructor(rows: readonly HistoryRow[] = []) {
    this.merge(rows);
  }

  /** Merges newer rows into the slots. */
  merge(rows: readonly HistoryRow[]): void {
    for (const { tier, atMs, figure, amount } of rows) {
      const slots = this.#slots.get(tier);
      // A newer larder has written a tier that this one does not know.
      if (slots === undefined) continue;
      const slot = slots.get(atMs) ?? new Map<Figure, number>();
      slots.set(atMs, slot);
      const known = slot.get(figure);
      slot.set(figure, known === undefined ? amount : mergedAmount(figure, known, amount));
    }
  }

  /** Drops the slots that are too old at this time. */
  expire(nowMs: number): void {
    for (const { tier, beforeMs } of expiredAt(nowMs)) {
      const slots = this.#slots.get(tier);
      for (const atMs of slots?.keys() ?? []) if (atMs < beforeMs) slots?.delete(atMs);
    }
  }

  slot(tier: Tier, atMs: number): Slot | undefined {
    return this.#slots.get(tier)?.get(atMs);
  }

  rows(): readonly HistoryRow[] {
    return TIER_NAMES.flatMap((tier) =>
      [...this.#slots.get(tier) ?? []].flatMap(([atMs, slot]) =>
        [...slot].map(([figure, amount]) => ({ tier, atMs, figure, amount }))
      )
    );
  }
}

/** The slot of several timelines together, the oldest in front; `undefined` if all lack it. */
function mergedSlot(
  timelines: readonly Timeline[],
  tier: Tier,
  atMs: number,
): Slot | undefined {
  const slots = timelines.flatMap((one) => one.slot(tier, atMs) ?? []);
  if (slots.length === 0) return undefined;
  const merged = new Map<Figure, number>();
  for (const slot of slots) {
    for (const [figure, amount] of slot) {
      const known = merged.get(figure);
      merged.set(figure, known === undefined ? amount : mergedAmount(figure, known, amount));
    }
  }
  return merged;
}

/** The rows that say that this happened now: one for each tier. */
export function rowsOf(
  amounts: Readonly<Partial<Record<Figure, number>>>,
  nowMs: number,
): readonly HistoryRow[] {
  const figures = Object.entries(amounts) as [Figure, number][];
  return TIER_NAMES.flatMap((tier) => {
    const atMs = slotAt(tier, nowMs);
    return figures.filter(([figure]) => tier === "lifetime" || figure !== "since_ms")
      .map(([figure, amount]) => ({ tier, atMs, figure, amount }));
  });
}

/** The start of the slot that a time belongs to. */
function slotAt(tier: Tier, nowMs: number): number {
  const { stepMs } = TIERS[tier];
  return stepMs === Infinity ? 0 : Math.floor(nowMs / stepMs) * stepMs;
}

/** The begins of a tier's slots up to now, the oldest first. */
function slotsUpTo(tier: Tier, nowMs: number): readonly number[] {
  const { stepMs, slotsMax } = TIERS[tier];
  const last = slotAt(tier, nowMs);
  if (stepMs === Infinity) return [last];
  return Array.from({ length: slotsMax }, (_, index) => last - (slotsMax - 1 - index) * stepMs);
}

/** Slots of each tier that are too old at this time. */
function expiredAt(nowMs: number): readonly ExpiredSlots[] {
  return TIER_NAMES.flatMap((tier) => {
    const [beforeMs = 0] = slotsUpTo(tier, nowMs);
    return tier === "lifetime" ? [] : [{ tier, beforeMs }];
  });
}
