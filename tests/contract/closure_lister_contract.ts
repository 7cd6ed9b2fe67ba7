import assert from "node:assert/strict";
import type { Change, ChangeWriter, PinNoter } from "../../src/metadata/metadata_store.ts";
import type { ClosureLister } from "../../src/pins/pinned_closures.ts";
import { changesOf, type GraphNode, hashOfNode, narBytesOf } from "../support/stored_graph.ts";
import type { Clauses } from "./contract.ts";

/** A lister of a store that has nothing yet. On this thread, rows take longer than a slice. */
export interface ClosuresScene {
  readonly lister: ClosureLister;
  readonly metadata: ChangeWriter & PinNoter;
  /** From now on no row below a pin can be read. */
  spoil(): void;
  mend(): void;
}

/** More than any lister needs to begin its count. */
const MICROTASKS = 100;

export const closureListerClauses: Clauses<ClosuresScene> = {
  "without pins it lists nothing": async ({ lister, metadata }) => {
    await metadata.apply(changesOf(chain(2)));
    assert.deepEqual(await lister.list(), []);
  },

  "each root has name, paths, bytes and time": async ({ lister, metadata }) => {
    await metadata.apply([
      ...changesOf([
        { references: [0, 1, 2, 3], nar: 7 },
        { references: [0], nar: 7 },
        { references: [], nar: 8, kept: false },
      ]),
      pin(1, Date.UTC(2026, 0, 2, 3, 4, 5)),
      pin(3, 0),
    ]);
    assert.deepEqual(await lister.list(), [
      {
        root: hashOfNode(1),
        name: "node-1",
        stored: 2,
        missing: 2,
        bytes: narBytesOf(7),
        ownBytes: narBytesOf(7),
        pinnedAt: "2026-01-02T03:04:05.000Z",
        ...{ keepComplete: false, complete: null, look: null },
      },
      {
        root: hashOfNode(3),
        name: null,
        stored: 0,
        missing: 1,
        bytes: 0,
        ownBytes: 0,
        pinnedAt: "1970-01-01T00:00:00.000Z",
        ...{ keepComplete: false, complete: null, look: null },
      },
    ]);
  },

  "a root's notes stand beside its counts": async ({ lister, metadata }) => {
    await metadata.apply([...changesOf(chain(1)), pin(0)]);
    const look = { atMs: 7, paths: 1, missing: 1, upstream: 1, nowhere: 0, examples: ["a-1"] };
    await metadata.notePin(hashOfNode(0), { keepComplete: true, look: { ...look, uncounted: 0 } });
    const [only] = await lister.list();
    const { atMs: _, ...shown } = { ...look, at: "1970-01-01T00:00:00.007Z" };
    assert.deepEqual(only?.look, shown);
    assert.deepEqual([only?.keepComplete, only?.complete], [true, false]);
  },

  "files that a look at any pin found lost are missing, and their bytes": async (scene) => {
    const { lister, metadata } = scene;
    await metadata.apply([
      ...changesOf([
        { references: [1, 2], nar: 7 },
        { references: [2], nar: 8 },
        { references: [], nar: 9 },
        { references: [], nar: 10, kept: false },
      ]),
      pin(0),
      pin(1),
      pin(3),
    ]);
    const found = { atMs: 7, paths: 2, missing: 2, upstream: 1, nowhere: 0, examples: ["a-1"] };
    const lost = [hashOfNode(2), hashOfNode(3), hashOfNode(99)];
    await metadata.notePin(hashOfNode(1), { look: { ...found, uncounted: 0, lost } });
    const sizes = (await lister.list()).map(({ stored, missing, lost, bytes, ownBytes }) => (
      { stored, missing, lost, bytes, ownBytes }
    ));
    assert.deepEqual(sizes, [
      {
        ...{ stored: 2, missing: 1, lost: 1 },
        ...{ bytes: narBytesOf(7) + narBytesOf(8), ownBytes: narBytesOf(7) },
      },
      { stored: 1, missing: 1, lost: 1, bytes: narBytesOf(8), ownBytes: 0 },
      { stored: 0, missing: 1, lost: undefined, bytes: 0, ownBytes: 0 },
    ]);
    const paths = await lister.paths(hashOfNode(1));
    assert.ok(paths.every(({ isKept }) => isKept), "their rows say that they are kept");
  },

  "the paths of a closure say which of them is kept": async ({ lister, metadata }) => {
    await metadata.apply(changesOf([
      { references: [0, 2, 1], nar: 7 },
      { references: [3], nar: 8, kept: false },
      { references: [], nar: 9 },
    ]));
    const [first, ...others] = await lister.paths(hashOfNode(0));
    assert.deepEqual(first, { storePathHash: hashOfNode(0), isKept: true });
    assert.deepEqual(
      new Map(others.map(({ storePathHash, ...path }) => [storePathHash, path])),
      new Map<string, object>([
        [hashOfNode(1), { isKept: false, referrer: hashOfNode(0) }],
        [hashOfNode(2), { isKept: true }],
        [hashOfNode(3), { isKept: false, referrer: hashOfNode(1) }],
      ]),
    );
    const unknown = { storePathHash: hashOfNode(9), isKept: false };
    assert.deepEqual(await lister.paths(hashOfNode(9)), [unknown]);
  },

  "a later list shows the pins and paths of its time": async ({ lister, metadata }) => {
    await metadata.apply([...changesOf(chain(1)), pin(0), pin(1)]);
    assert.deepEqual((await lister.list()).map(({ stored }) => stored), [1, 0]);
    await metadata.apply([
      ...changesOf(chain(2)),
      { kind: "remove-pin", storePathHash: hashOfNode(1) },
    ]);
    assert.deepEqual((await lister.list()).map(({ stored }) => stored), [2]);
  },

  "unreadable rows are a rejection, and the next list counts again": async (scene) => {
    const { lister, metadata } = scene;
    await metadata.apply([...changesOf(chain(2)), pin(0)]);
    scene.spoil();
    await assert.rejects(lister.list());
    scene.mend();
    assert.deepEqual((await lister.list()).map(({ stored }) => stored), [2]);
  },

  "a count that begins is rejected when its client leaves": async ({ lister, metadata }) => {
    await metadata.apply([...changesOf(chain(2)), pin(0)]);
    const client = new AbortController();
    const rejected = assert.rejects(lister.list(client.signal), /gone/);
    client.abort(new Error("gone"));
    await rejected;
  },

  "a running count is rejected when its client leaves, and no other one": async (scene) => {
    const { lister, metadata } = scene;
    await metadata.apply([...changesOf(chain(2)), pin(0)]);
    const client = new AbortController();
    const rejected = assert.rejects(lister.list(client.signal), /gone/);
    // In a whole turn of the event loop another thread might answer.
    for (let count = 0; count < MICROTASKS; count++) await undefined;
    client.abort(new Error("gone"));
    await rejected;
    assert.deepEqual((await lister.list()).map(({ stored }) => stored), [2]);
  },
};

/** Each node refers to itself and the next one. */
function chain(length: number): readonly GraphNode[] {
  return Array.from({ length }, (_, node) => ({
    references: node + 1 < length ? [node, node + 1] : [node],
    nar: node,
  }));
}

function pin(node: number, pinnedAtMs = node): Change {
  return { kind: "put-pin", pin: { storePathHash: hashOfNode(node), pinnedAtMs } };
}
