import assert from "node:assert/strict";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { PULL_BYTES_MAX, type PullRow, PULLS_MAX } from "../../src/metadata/history_keeper.ts";
import type { Clauses } from "./contract.ts";

function pullRow(id: string, more: Partial<PullRow> = {}): PullRow {
  return { id, client: "laptop", summary: `{"of":"${id}"}`, paths: "[]", ...more };
}

const idsOf = (pulls: readonly { readonly id: string }[]) => pulls.map(({ id }) => id);

export const pullKeeperClauses: Clauses<MetadataStore> = {
  "pulls() of a first start is empty": async (store) => {
    assert.deepEqual(await store.pulls(5), []);
    assert.equal(await store.findPull("a"), undefined);
  },

  "pulls() has the newest first, without their paths": async (store) => {
    await store.recordPulls([pullRow("a"), pullRow("b", { client: "ci" })]);
    await store.recordPulls([pullRow("c", { paths: '["x"]' })]);
    assert.deepEqual(idsOf(await store.pulls(2)), ["c", "b"]);
    assert.deepEqual((await store.pulls(1))[0]?.summary, '{"of":"c"}');
    assert.deepEqual(await store.findPull("c"), pullRow("c", { paths: '["x"]' }));
  },

  "pulls() of a client are those of this client alone": async (store) => {
    await store.recordPulls([pullRow("a"), pullRow("b", { client: "ci" }), pullRow("c")]);
    assert.deepEqual(idsOf(await store.pulls(5, "laptop")), ["c", "a"]);
    assert.deepEqual(await store.pulls(5, "l%"), []);
  },

  "recordPulls() of a known pull changes nothing, so a write may run twice": async (store) => {
    await store.recordPulls([pullRow("a"), pullRow("b")]);
    await store.recordPulls([pullRow("a", { client: "other" })]);
    assert.deepEqual(idsOf(await store.pulls(5)), ["b", "a"]);
    assert.equal((await store.findPull("a"))?.client, "laptop");
  },

  "recordPulls() keeps the last 200, in one mebibyte with the longest rows": async (store) => {
    const summary = "s".repeat(PULL_BYTES_MAX.summary);
    const paths = "p".repeat(PULL_BYTES_MAX.paths);
    const rows = Array.from(
      { length: PULLS_MAX + 7 },
      (_, index) => pullRow(`${index}`, { summary, paths }),
    );
    await store.recordPulls(rows);
    const kept = idsOf(await store.pulls(1_000));
    assert.equal(kept.length, PULLS_MAX);
    assert.deepEqual([kept[0], kept.at(-1)], [`${PULLS_MAX + 6}`, "7"]);
    assert.ok(PULLS_MAX * (summary.length + paths.length) <= 1 << 20);
  },
};
