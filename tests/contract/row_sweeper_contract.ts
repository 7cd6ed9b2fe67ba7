import assert from "node:assert/strict";
import {
  type Change,
  type MetadataStore,
  NAR_GRACE_MS,
  type RowSweepOrder,
} from "../../src/metadata/metadata_store.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { fileOf, hash, keep, narOf, put, rowOf, source } from "../support/metadata_rows.ts";
import { sweepAll } from "../support/swept_rows.ts";
import type { Clauses } from "./contract.ts";

const [a, b, c, d] = [hash("a"), hash("b"), hash("c"), hash("d")];

/** The promises of a metadata store about rows without requests. */
export const rowSweeperClauses: Clauses<MetadataStore> = {
  "sweepRows() removes an unused narinfo first, and its NAR with its sources a day later": async (
    store,
  ) => {
    await store.apply([put(a, [b, c], 10), put(d, [], 11)]);
    assert.deepEqual(await sweepAll(store, 10), { narinfos: [a], nars: [] });
    assert.equal(await store.findNarinfo(a), undefined);
    assert.deepEqual(await store.referencesOf(a), []);
    assert.ok(await store.findNar(narOf(a).name));
    assert.deepEqual(await store.sourcesOf(narOf(a).name), [source]);
    await store.apply([touch(d, 20 + NAR_GRACE_MS)]);
    assert.deepEqual(await sweepAll(store, 9 + NAR_GRACE_MS), { narinfos: [], nars: [] });
    assert.deepEqual(await sweepAll(store, 10 + NAR_GRACE_MS), {
      narinfos: [],
      nars: [narOf(a).name],
    });
    assert.equal(await store.findNar(narOf(a).name), undefined);
    assert.deepEqual(await store.sourcesOf(narOf(a).name), []);
    assert.ok(await store.findNarinfo(d));
  },

  "a use of a narinfo, of its NAR, or of a NAR without narinfo holds off sweepRows()": async (
    store,
  ) => {
    await store.apply([put(a, [], 1), put(b, [], 1), put(c, [], 1)]);
    await store.apply([remove(c), touch(a, 100), touchNar(b, 100), touchNar(c, 100)]);
    assert.deepEqual(await sweepAll(store, 99), { narinfos: [], nars: [] });
    const { narinfos, nars } = await sweepAll(store, 100);
    assert.deepEqual([new Set(narinfos), nars], [new Set([a, b]), [narOf(c).name]]);
  },

  "a path that was swept is stored again, and its NAR too": async (store) => {
    await store.apply([put(a, [b], 1)]);
    await sweepAll(store, 1);
    await sweepAll(store, 1 + NAR_GRACE_MS);
    assert.equal(await store.findNar(narOf(a).name), undefined);
    await store.apply([put(a, [b], 2 + NAR_GRACE_MS)]);
    assert.deepEqual(await store.findNarinfo(a), put(a, []).row);
    assert.deepEqual(await store.referencesOf(a), [b]);
    assert.deepEqual(await store.findNar(narOf(a).name), narOf(a));
    assert.deepEqual(await sweepAll(store, 1 + NAR_GRACE_MS), { narinfos: [], nars: [] });
  },

  "a NAR whose narinfo comes back within its day stays": async (store) => {
    await store.apply([put(a, [], 1)]);
    await sweepAll(store, 1);
    await store.apply([put(a, [], 2)]);
    await store.apply([touch(a, 9 * NAR_GRACE_MS)]);
    assert.deepEqual(await sweepAll(store, 8 * NAR_GRACE_MS), { narinfos: [], nars: [] });
    assert.ok(await store.findNar(narOf(a).name));
  },

  "a kept NAR file and its narinfos are never swept": async (store) => {
    const nar = narOf("shared");
    await store.apply([{ ...put(a, [], 1), nar, row: rowOf(a, nar) }]);
    await store.apply([{ ...put(b, [], 1), nar, row: rowOf(b, nar) }, ...keep(fileOf(nar.name))]);
    await store.apply([put(c, [], 1), ...keep(fileOf(narOf(c).name)), remove(c)]);
    assert.deepEqual(await sweepAll(store, 1_000), { narinfos: [], nars: [] });
    assert.equal((await store.narinfosOf(nar.name)).length, 2);
    assert.ok((await store.findNar(narOf(c).name))?.kept);
  },

  "a NAR whose file went is swept by its last use, with or without a narinfo": async (store) => {
    const files = [a, b].map((path) => fileOf(narOf(path).name));
    await store.apply([put(a, [], 1), put(b, [], 1), ...files.flatMap((file) => keep(file))]);
    await store.apply([remove(b), touchNar(b, 50)]);
    for (const { at } of files) {
      await store.apply([{ kind: "nar-marked", at, owner: "we" }, { kind: "nar-gone", at }]);
    }
    assert.deepEqual(await sweepAll(store, 49), { narinfos: [a], nars: [] });
    assert.deepEqual(await sweepAll(store, 50), { narinfos: [], nars: [narOf(b).name] });
  },

  "the row that eviction leaves of a NAR is swept too": async (store) => {
    await store.apply([put(a, [], 5), ...keep(fileOf(narOf(a).name)), put(b, [], 4)]);
    const spared = new Set<NarName>();
    const order = { bytesMin: Infinity, entriesMax: 8, spared, owner: "we" };
    const { files: [file] } = await store.evict(order);
    assert.ok(file);
    assert.deepEqual(await sweepAll(store, 5), { narinfos: [], nars: [narOf(b).name] });
    // Its file is being removed, and no row says yet that it is gone.
    assert.ok(await store.findNar(narOf(a).name));
    await store.apply([{ kind: "nar-gone", at: file.at }]);
    assert.deepEqual(await sweepAll(store, 5), { narinfos: [], nars: [narOf(a).name] });
  },

  "a NAR that is being published is not swept": async (store) => {
    const { at } = fileOf(narOf(a).name);
    await store.apply([put(a, [], 1), remove(a), { kind: "nar-publishing", at, owner: "we" }]);
    assert.deepEqual(await sweepAll(store, 1_000), { narinfos: [], nars: [] });
  },

  "a NAR that its narinfo left for another is swept by the time of that": async (store) => {
    const lie = narOf("lie");
    await store.apply([{ ...put(a, [], 1), nar: lie, row: rowOf(a, lie) }]);
    await store.apply([put(a, [], 30)]);
    assert.deepEqual(await sweepAll(store, 29), { narinfos: [], nars: [] });
    await store.apply([touch(a, 40)]);
    assert.deepEqual(await sweepAll(store, 30), { narinfos: [], nars: [lie.name] });
    assert.deepEqual(await store.narinfosOf(narOf(a).name), [a]);
  },

  "a pinned path is never swept, nor its references, nor later paths of its closure": async (
    store,
  ) => {
    await store.apply([put(a, [b], 1), put(b, [c], 1), put(d, [], 1)]);
    await store.apply([{ kind: "put-pin", pin: { storePathHash: a, pinnedAtMs: 1 } }]);
    assert.deepEqual(await sweepAll(store, 1_000), { narinfos: [d], nars: [] });
    assert.deepEqual(await store.referencesOf(b), [c]);
    await store.apply([put(c, [d], 2), put(d, [], 2)]);
    assert.deepEqual(await sweepAll(store, 1_000), { narinfos: [], nars: [] });
    await store.apply([{ kind: "remove-pin", storePathHash: a }]);
    assert.deepEqual(new Set((await sweepAll(store, 1_000)).narinfos), new Set([a, b, c, d]));
  },

  "a spared NAR is not swept, and does not hold up the others": async (store) => {
    const paths = [a, b, c, d];
    await store.apply([...paths.map((path, at) => put(path, [], at)), remove(c), remove(d)]);
    const spared = new Set([narOf(a).name, narOf(c).name]);
    const { narinfos, nars } = await sweepAll(store, 1_000, { spared, rowsMax: 1 });
    assert.deepEqual([narinfos, nars], [[b], [narOf(d).name]]);
  },

  "sweepRows() takes small batches until nothing is left": async (store) => {
    const paths = Array.from({ length: 50 }, (_, index) => hash(`path ${index}`));
    await store.apply(paths.map((path) => put(path, paths.slice(0, 3), 1)));
    const first = await store.sweepRows({ ...order, unusedSinceMs: 1, rowsMax: 7 });
    assert.ok(first.narinfos.length > 0 && first.narinfos.length <= 7);
    const rest = await sweepAll(store, 1, { rowsMax: 7 });
    assert.equal(new Set([...first.narinfos, ...rest.narinfos]).size, 50);
  },
};

const order: RowSweepOrder = { unusedSinceMs: 0, rowsMax: 100, spared: new Set() };

function remove(storePathHash: StorePathHash): Change {
  return { kind: "remove-narinfo", storePathHash };
}

function touch(storePathHash: StorePathHash, atMs: number): Change {
  return { kind: "touch-narinfo", storePathHash, atMs };
}

function touchNar(storePathHash: StorePathHash, atMs: number): Change {
  return { kind: "touch-nar", narName: narOf(storePathHash).name, atMs };
}
