import { rowsOf, Timeline } from "../../src/history/history.ts";
import type { Figure, HistoryRow } from "../../src/metadata/history_keeper.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const DAYS = 31;

/** Working hours of an office, from 0 to 23 o'clock, in shares of the busiest. */
const HOURS = [
  ...[0.1, 0.06, 0.05, 0.05, 0.08, 0.12, 0.25, 0.5, 0.8, 1, 0.95, 0.8],
  ...[0.6, 0.85, 1, 0.9, 0.75, 0.6, 0.4, 0.3, 0.3, 0.25, 0.2, 0.15],
];

/** Eviction begins here, and goes on down to there. */
const FULL_BYTES = 132 * GIB;
const EVICTED_TO_BYTES = 130 * GIB;

/** As much as in so many further months was done before this one. */
const MONTHS_BEFORE = 7;

export interface PastMonth {
  readonly rows: readonly HistoryRow[];
  /** At its end. */
  readonly storedBytes: number;
}

/**
 * The history of a small office that has used larder for eight months. Its bytes add up: served
 * bytes were fetched or saved, and fetched bytes are stored or evicted.
 */
export function pastMonth(nowMs: number): PastMonth {
  const past = new Timeline();
  let storedBytes = 128 * GIB;
  let last: Amounts | undefined;
  const sums = new Map<string, number>();
  for (let atMs = nowMs - DAYS * DAY_MS; atMs < nowMs; atMs += 10 * MINUTE_MS) {
    const amounts = tenMinutes(atMs);
    storedBytes += amounts.fetched_bytes;
    const evicted_bytes = storedBytes > FULL_BYTES ? storedBytes - EVICTED_TO_BYTES : 0;
    storedBytes -= evicted_bytes;
    const evicted_entries = Math.round(evicted_bytes / (9 * MIB));
    last = { ...amounts, evicted_bytes, evicted_entries, stored_bytes: storedBytes };
    for (const [name, amount] of Object.entries(last)) {
      sums.set(name, (sums.get(name) ?? 0) + amount);
    }
    past.merge(rowsOf(last, atMs).filter(({ tier }) => tier !== "hour"));
  }
  for (let atMs = nowMs - 60 * MINUTE_MS; atMs < nowMs; atMs += MINUTE_MS) {
    const minute = mapped(tenMinutes(atMs), (amount) => amount / 10);
    const rows = rowsOf({ ...minute, stored_bytes: storedBytes }, atMs);
    past.merge(rows.filter(({ tier }) => tier === "hour"));
  }
  const before = mapped(Object.fromEntries(sums), (amount) => amount * MONTHS_BEFORE);
  const since_ms = nowMs - (MONTHS_BEFORE + 1) * DAYS * DAY_MS;
  past.merge(rowsOf({ ...before, since_ms }, nowMs).filter(({ tier }) => tier === "lifetime"));
  return { rows: past.rows(), storedBytes };
}

type Amounts = Readonly<Record<string, number>>;

/** The events of ten minutes at that time of the week. The same time brings the same. */
function tenMinutes(atMs: number) {
  const at = new Date(atMs);
  const isWeekend = at.getUTCDay() % 6 === 0;
  const load = (HOURS[at.getUTCHours()] ?? 0) * (isWeekend ? 0.2 : 1) * (0.55 + 0.9 * noise(atMs));
  // An update of nixpkgs: for some hours few requested paths are stored.
  const isNew = noise(Math.floor(atMs / (5 * 60 * MINUTE_MS))) > 0.88;
  const ratio = (isNew ? 0.72 : 0.93) + 0.06 * noise(atMs + 1);
  const served = Math.round(load * 190 * MIB);
  const fetched_bytes = Math.round(served * (1 - ratio));
  const counts = mapped({
    narinfo_hits: load * 260 * ratio,
    narinfo_misses: load * 260 * (1 - ratio),
    nar_hits: load * 48 * ratio,
    nar_misses: load * 48 * (1 - ratio),
    absent: load * 40,
    in_flight_ms: load * (1 - ratio) * 1_500_000,
  }, (amount) => amount);
  return { ...counts, served_bytes: served, fetched_bytes, saved_bytes: served - fetched_bytes };
}

function mapped(amounts: Amounts, to: (amount: number) => number): Partial<Record<Figure, number>> {
  return Object.fromEntries(
    Object.entries(amounts).map(([name, amount]) => [name, Math.round(to(amount))]),
  );
}

/** A number from 0 to 1 that depends on nothing but the seed. */
function noise(seed: number): number {
  const x = Math.sin(seed / 1_000 % 100_000) * 43_758.5453;
  return x - Math.floor(x);
}
