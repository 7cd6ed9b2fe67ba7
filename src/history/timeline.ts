import {
  type ExpiredSlots,
  type Figure,
  type HistoryRow,
  mergedAmount,
  type Tier,
  TIERS,
} from "../metadata/history_keeper.ts";

/** The figures of one slot. A figure without an amount is absent. */
export type Slot = ReadonlyMap<Figure, number>;

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
export function mergedSlot(
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
export function slotAt(tier: Tier, nowMs: number): number {
  const { stepMs } = TIERS[tier];
  return stepMs === Infinity ? 0 : Math.floor(nowMs / stepMs) * stepMs;
}

/** The begins of a tier's slots up to now, the oldest first. */
export function slotsUpTo(tier: Tier, nowMs: number): readonly number[] {
  const { stepMs, slotsMax } = TIERS[tier];
  const last = slotAt(tier, nowMs);
  if (stepMs === Infinity) return [last];
  return Array.from({ length: slotsMax }, (_, index) => last - (slotsMax - 1 - index) * stepMs);
}

/** Slots of each tier that are too old at this time. */
export function expiredAt(nowMs: number): readonly ExpiredSlots[] {
  return TIER_NAMES.flatMap((tier) => {
    const [beforeMs = 0] = slotsUpTo(tier, nowMs);
    return tier === "lifetime" ? [] : [{ tier, beforeMs }];
  });
}
