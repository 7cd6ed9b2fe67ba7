import assert from "node:assert/strict";
import { Failure } from "../../../src/base/failure.ts";
import type { Change } from "../../../src/metadata/metadata_store.ts";
import { PinnedClosures } from "../../../src/pins/pinned_closures.ts";
import { PinReads } from "../../../src/pins/pins.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { changesOf, type GraphNode, hashOfNode, narBytesOf } from "../../support/stored_graph.ts";

const LENGTH = 100;
const signal = new AbortController().signal;

function pin(node: number): Change {
  return { kind: "put-pin", pin: { storePathHash: hashOfNode(node), pinnedAtMs: node } };
}

/** Pins over a chain of paths, with counted reads and a generation that the test raises. */
async function scene() {
  const metadata = new MemoryMetadataStore();
  const nodes = Array.from({ length: LENGTH }, (_, node): GraphNode => ({
    references: node === 0 ? [] : [node - 1],
    nar: node,
  }));
  await metadata.apply([...changesOf(nodes), pin(LENGTH - 1), pin(50)]);
  const state = { generation: 1, nowMs: 0, pins: 0, rows: 0, counts: 0, isSlow: false };
  const counting = {
    findPin: metadata.findPin.bind(metadata),
    narinfoBodies: metadata.narinfoBodies.bind(metadata),
    pins: () => {
      state.pins++;
      return metadata.pins();
    },
    namedPins: metadata.namedPins.bind(metadata),
    graphRows: async (hashes: Parameters<typeof metadata.graphRows>[0], ending?: AbortSignal) => {
      state.rows += hashes.length;
      if (state.isSlow) throw new Failure("overloaded", "beyond the limits");
      return await metadata.graphRows(hashes, ending);
    },
  };
  const lister = new PinnedClosures({ metadata: counting });
  const reads = new PinReads({
    metadata: counting,
    closures: {
      list: (ending) => {
        state.counts++;
        return lister.list(ending);
      },
    },
    generation: () => state.generation,
    nowMs: () => state.nowMs,
  });
  return { metadata, state, reads, [Symbol.dispose]: () => reads[Symbol.dispose]() };
}

Deno.test("pin reads: a hundred searches of one generation read the graph once", async () => {
  using scene_ = await scene();
  const { state, reads } = scene_;
  for (let node = 0; node < LENGTH; node++) {
    const found = await reads.rootsReaching(hashOfNode(node), signal);
    const all = node <= 50 ? [LENGTH - 1, 50] : [LENGTH - 1];
    assert.deepEqual(found, all.map(hashOfNode));
  }
  assert.deepEqual(await reads.rootsReaching(hashOfNode(LENGTH), signal), []);
  assert.deepEqual([state.pins, state.rows], [1, LENGTH]);
});

Deno.test("pin reads: a change of rows or pins is seen by the next search", async () => {
  using scene_ = await scene();
  const { metadata, state, reads } = scene_;
  assert.equal((await reads.rootsReaching(hashOfNode(0), signal)).length, 2);
  await metadata.apply([{ kind: "remove-pin", storePathHash: hashOfNode(50) }]);
  state.generation++;
  assert.equal((await reads.rootsReaching(hashOfNode(0), signal)).length, 1);
  // Of another member, which raises no generation here.
  await metadata.apply([pin(3)]);
  assert.equal((await reads.pins()).length, 1);
  state.nowMs += 1_000;
  assert.equal((await reads.pins()).length, 2);
  assert.equal((await reads.rootsReaching(hashOfNode(0), signal)).length, 2);
});

Deno.test("pin reads: closures that are too large are read once a generation, too", async () => {
  using scene_ = await scene();
  const { state, reads } = scene_;
  state.isSlow = true;
  const isOverloaded = (error: unknown) => error instanceof Failure && error.kind === "overloaded";
  for (let count = 0; count < 3; count++) {
    await assert.rejects(reads.rootsReaching(hashOfNode(0), signal), isOverloaded);
  }
  assert.equal(state.rows, 2);
});

Deno.test("pin reads: counts of one generation are one, also for those that come at once", async () => {
  using scene_ = await scene();
  const { state, reads } = scene_;
  const waiter = { client: "a", signal };
  const counts = await Promise.all([1, 2, 3].map(() => reads.closures(waiter)));
  assert.deepEqual(counts.map((count) => count === counts[0]), [true, true, true]);
  assert.equal(await reads.closures(waiter), counts[0]);
  assert.equal(state.counts, 1);
  state.generation++;
  assert.notEqual(await reads.closures(waiter), counts[0]);
});

Deno.test("pin reads: bytes that looks found lost count once, while their rows keep them", async () => {
  using scene_ = await scene();
  const { metadata, state, reads } = scene_;
  const found = { atMs: 1, paths: 9, missing: 9, upstream: 0, nowhere: 0, uncounted: 0 };
  const lose = (node: number, nodes: readonly number[]) => {
    const look = { ...found, examples: [], lost: nodes.map(hashOfNode) };
    return metadata.notePin(hashOfNode(node), { look });
  };
  await reads.readLost();
  assert.deepEqual([reads.lostBytes, state.rows], [0, 0]);
  // Node 200 shares the file of node 3; node 201 has none by now.
  await metadata.apply(changesOf([
    ...Array(201).keys().map((node) => ({
      references: [],
      ...node === 200 ? { nar: 3 } : {},
    })),
  ]));
  await lose(50, [3, 4, 201]);
  await lose(LENGTH - 1, [4, 200, 7]);
  state.generation++;
  await reads.readLost();
  assert.equal(reads.lostBytes, [3, 4, 7].reduce((sum, nar) => sum + narBytesOf(nar), 0));
  await metadata.apply([{ kind: "remove-pin", storePathHash: hashOfNode(LENGTH - 1) }]);
  state.generation++;
  await reads.readLost();
  assert.equal(reads.lostBytes, narBytesOf(3) + narBytesOf(4));
});

Deno.test("pin reads: a count ends with its client, and at the disposal", async () => {
  using scene_ = await scene();
  const { reads } = scene_;
  const client = new AbortController();
  const left = assert.rejects(reads.closures({ client: "a", signal: client.signal }), /gone/);
  client.abort(new Error("gone"));
  await left;
  assert.equal((await reads.closures({ client: "a", signal })).length, 2);
  reads[Symbol.dispose]();
  await assert.rejects(reads.closures({ client: "a", signal }), /is stopping/);
});
