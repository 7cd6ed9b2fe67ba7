import assert from "node:assert/strict";
import type { HistoryRow } from "../../src/metadata/history_keeper.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import type { Clauses } from "./contract.ts";

function row(amount: number, more: Partial<HistoryRow> = {}): HistoryRow {
  return { tier: "hour", atMs: 60_000, figure: "nar_hits", amount, ...more };
}

/** All rows in one order. */
async function rowsOf(store: MetadataStore): Promise<readonly HistoryRow[]> {
  const key = ({ tier, atMs, figure }: HistoryRow) => `${tier} ${atMs} ${figure}`;
  return [...await store.history()].sort((a, b) => key(a) < key(b) ? -1 : 1);
}

export const historyKeeperClauses: Clauses<MetadataStore> = {
  "history() of a first start is empty": async (store) => {
    assert.deepEqual(await store.history(), []);
  },

  "recordHistory() adds sums, so that members add up": async (store) => {
    await store.recordHistory([row(3), row(2, { tier: "lifetime", atMs: 0 })], []);
    await store.recordHistory([row(4)], []);
    assert.deepEqual(await rowsOf(store), [row(7), row(2, { tier: "lifetime", atMs: 0 })]);
  },

  "recordHistory() keeps the last stored size, and the first time": async (store) => {
    const stored = { figure: "stored_bytes" } as const;
    const since = { figure: "since_ms", tier: "lifetime", atMs: 0 } as const;
    await store.recordHistory([row(900, stored), row(1_000, since)], []);
    await store.recordHistory([row(500, stored), row(2_000, since)], []);
    assert.deepEqual(await rowsOf(store), [row(500, stored), row(1_000, since)]);
  },

  "recordHistory() removes the old slots of a tier, and of no other": async (store) => {
    const day = { tier: "day", atMs: 0 } as const;
    await store.recordHistory([row(1), row(2, { atMs: 120_000 }), row(3, day)], []);
    await store.recordHistory([], [{ tier: "hour", beforeMs: 120_000 }]);
    assert.deepEqual(await rowsOf(store), [row(3, day), row(2, { atMs: 120_000 })]);
  },

  "an amount above 4 GiB survives the round trip": async (store) => {
    const large = row(2 ** 50 + 1, { figure: "served_bytes" });
    await store.recordHistory([large], []);
    assert.deepEqual(await store.history(), [large]);
  },
};
