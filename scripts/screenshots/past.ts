import type { Figure, HistoryRow } from "../../src/metadata/history_keeper.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { rowsOf } from "../../src/history/timeline.ts";

const MIB = 2 ** 20;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
const DAYS = 31;

/** Working hours of a team, from 0 to 23 o'clock, in shares of the busiest. */
const HOURS = [
  ...[0.1, 0.06, 0.05, 0.05, 0.08, 0.12, 0.25, 0.5, 0.8, 1, 0.95, 0.8],
  ...[0.6, 0.85, 1, 0.9, 0.75, 0.6, 0.4, 0.3, 0.3, 0.25, 0.2, 0.15],
];

/** Writes a month of a team's work into a new database: what the pictures show of the past. */
export async function writePast(databasePath: string): Promise<void> {
  await using store = new SqliteMetadataStore(await openDatabase(databasePath));
  const nowMs = Date.now();
  const beganMs = nowMs - 250 * DAY_MS;
  await store.recordHistory(lifetimeRows(beganMs), []);
  let stored = 8 * MIB;
  const rows: HistoryRow[] = [];
  for (let atMs = nowMs - DAYS * DAY_MS; atMs < nowMs; atMs += 10 * MINUTE_MS) {
    const amounts = tenMinutes(atMs);
    // What is evicted makes room for the next.
    stored = Math.round(Math.min(54 * MIB, stored + amounts.fetched_bytes / 160));
    rows.push(...rowsOf({ ...amounts, stored_bytes: stored }, atMs));
  }
  const hour = rows.filter(({ tier }) => tier !== "hour");
  for (let atMs = nowMs - 60 * MINUTE_MS; atMs < nowMs; atMs += MINUTE_MS) {
    const amounts = Object.entries(tenMinutes(atMs))
      .map(([figure, amount]) => [figure, Math.round(amount / 10)]);
    const minute = rowsOf({ ...Object.fromEntries(amounts), stored_bytes: stored }, atMs);
    hour.push(...minute.filter(({ tier }) => tier === "hour"));
  }
  await store.recordHistory(hour, []);
}

/** What ten minutes of that time of the week bring. The same time brings the same. */
function tenMinutes(atMs: number) {
  const at = new Date(atMs);
  const isWeekend = at.getUTCDay() % 6 === 0;
  const load = (HOURS[at.getUTCHours()] ?? 0) * (isWeekend ? 0.2 : 1) * (0.55 + 0.9 * noise(atMs));
  // An update of nixpkgs: for some hours few requested paths are stored.
  const isNew = noise(Math.floor(atMs / (5 * 3_600_000))) > 0.82;
  const ratio = (isNew ? 0.62 : 0.93) + 0.06 * noise(atMs + 1);
  const served = load * 160 * MIB;
  const narinfos = load * 1_200;
  const nars = load * 190;
  return Object.fromEntries(
    Object.entries({
      narinfo_hits: narinfos * ratio,
      narinfo_misses: narinfos * (1 - ratio),
      nar_hits: nars * ratio,
      nar_misses: nars * (1 - ratio),
      absent: narinfos * 0.2,
      served_bytes: served,
      fetched_bytes: served * (1 - ratio),
      saved_bytes: served * ratio,
      evicted_bytes: isNew ? served * (1 - ratio) * 0.8 : 0,
      evicted_entries: isNew ? nars * 0.2 : 0,
      in_flight_ms: load * (1 - ratio) * 9_000_000,
    }).map(([figure, amount]) => [figure, Math.round(amount)]),
  ) as Record<Figure, number>;
}

/** What the months before have brought. */
function lifetimeRows(beganMs: number): readonly HistoryRow[] {
  const before = { served_bytes: 3_600_000 * MIB, fetched_bytes: 410_000 * MIB };
  const amounts = { ...before, saved_bytes: 3_190_000 * MIB, since_ms: beganMs };
  return rowsOf(amounts, beganMs).filter(({ tier }) => tier === "lifetime");
}

/** A number from 0 to 1 that depends on nothing but the seed. */
function noise(seed: number): number {
  const x = Math.sin(seed / 1_000 % 100_000) * 43_758.5453;
  return x - Math.floor(x);
}
