import assert from "node:assert/strict";
import { historyStats, rangeToShow } from "../../../../src/http/stats/gather_stats.ts";

const SINCE = "2026-01-02T03:00:00.000Z";

const NO_REQUEST = { requests: 0, hit_ratio: null };

Deno.test("history: people see the hour while the past is younger than two hours", () => {
  const lifetime = { since: SINCE, requests: 0, served_bytes: 0, upstream_bytes: 0 };
  const after = (minutes: number) =>
    rangeToShow(
      { ...lifetime, saved_bytes: 0, narinfo: NO_REQUEST, nar: NO_REQUEST },
      Date.parse(SINCE) + minutes * 60_000,
    );
  assert.deepEqual([after(0), after(119), after(120), after(90_000)], [
    ...["hour", "hour"],
    ...["day", "day"],
  ]);
});

Deno.test("history: the requested range stays, and an unknown one is the default", () => {
  const history = { slots: () => [], lifetime: () => new Map() };
  assert.equal(historyStats(history, "week", "hour").range, "week");
  assert.equal(historyStats(history, undefined, "hour").range, "hour");
  assert.equal(historyStats(history, "lifetime").range, "day");
});
