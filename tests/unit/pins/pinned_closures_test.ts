import assert from "node:assert/strict";
import { meaningOf } from "../../../src/base/failure.ts";
import type { Change } from "../../../src/metadata/metadata_store.ts";
import type { StorePathHash } from "../../../src/nix/store_path.ts";
import { PinnedClosures } from "../../../src/pins/pinned_closures.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { narOf } from "../../support/metadata_rows.ts";
import { changesOf, type GraphNode, hashOfNode, narBytesOf } from "../../support/stored_graph.ts";

function pin(node: number, pinnedAtMs = 0): Change {
  return { kind: "put-pin", pin: { storePathHash: hashOfNode(node), pinnedAtMs } };
}

Deno.test("pinned closures: a ring of 20,000 paths is walked, others get their turn", async () => {
  const length = 20_000;
  const chain = Array.from({ length }, (_, node): GraphNode => ({
    // The last one refers to the first: a single ring.
    references: [(node + 1) % length, node],
    nar: node,
  }));
  await using metadata = new MemoryMetadataStore();
  await metadata.apply([...changesOf(chain), ...[0, 1, 19_999].map((node) => pin(node))]);
  let turns = 0;
  const timer = setInterval(() => turns++, 0);

  const closures = await new PinnedClosures({ metadata }).list();
  clearInterval(timer);

  const bytes = chain.reduce((sum, { nar = 0 }) => sum + narBytesOf(nar), 0);
  for (const { stored, missing, bytes: counted } of closures) {
    assert.deepEqual([stored, missing, counted], [length, 0, bytes]);
  }
  assert.equal(closures.length, 3);
  assert.ok(turns > 2, `${turns} turns of the event loop`);
});

Deno.test("pinned closures: rows below a thousand overlapping pins are read once", async () => {
  await using metadata = new MemoryMetadataStore();
  const nodes = Array.from({ length: 1_000 }, (_, node): GraphNode => ({
    references: node === 0 ? [] : [node - 1],
    nar: node,
  }));
  await metadata.apply([...changesOf(nodes), ...nodes.map((_, node) => pin(node))]);
  let reads = 0;
  const counting = {
    pins: metadata.pins.bind(metadata),
    findPin: metadata.findPin.bind(metadata),
    narinfoBodies: metadata.narinfoBodies.bind(metadata),
    graphRows: (hashes: Parameters<typeof metadata.graphRows>[0]) => {
      reads += hashes.length;
      return metadata.graphRows(hashes);
    },
  };
  const pinned = new PinnedClosures({ metadata: counting });

  const closures = await pinned.list();

  assert.deepEqual(closures.map(({ stored }) => stored), nodes.map((_, node) => node + 1));
  assert.equal(reads, 1_000);
});

for (const [paths, status] of [[500_000, undefined], [500_001, 503]] as const) {
  Deno.test(`pinned closures: of ${paths} paths the result is ${status ?? "a count"}`, async () => {
    const [root = hashOfNode(0), ...others] = Array.from({ length: paths }, (_, place) => {
      return `${place}`.padStart(32, "0") as StorePathHash;
    });
    const { name: narName } = narOf("root");
    const row = { storePathHash: root, narName, keptBytes: undefined, references: others };
    await using metadata = new MemoryMetadataStore();
    await metadata.apply([{ kind: "put-pin", pin: { storePathHash: root, pinnedAtMs: 0 } }]);
    const wide = {
      pins: metadata.pins.bind(metadata),
      findPin: metadata.findPin.bind(metadata),
      narinfoBodies: metadata.narinfoBodies.bind(metadata),
      // The root refers to all others, and they to nothing.
      graphRows: async ([first]: readonly StorePathHash[]) => first === root ? [row] : [],
    };

    const count = new PinnedClosures({ metadata: wide }).list();

    if (status === undefined) assert.equal((await count)[0]?.missing, paths);
    else await assert.rejects(count, (error) => meaningOf(error).status === status);
  });
}
