import assert from "node:assert/strict";
import { type Change, type MetadataStore, Outdated } from "../../src/metadata/metadata_store.ts";
import type { EvictionOrder, ExpiryOrder } from "../../src/metadata/space_keeper.ts";
import { fileOf, hash, keep, narOf, put } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";

const [a, b] = [hash("a"), hash("b")];
const nar = narOf(a);
const file = fileOf(nar.name);
const stage: Change = { kind: "stage-nar", nar, untilMs: 5_000 };
const staged = [stage, ...keep(file)];
const all: EvictionOrder = {
  bytesMin: Infinity,
  entriesMax: 100,
  spared: new Set(),
  owner: "we",
};

const over: ExpiryOrder = { atMs: 5_000, spared: new Set(), owner: "we" };

/** The promises of a metadata store about uploads: NARs before their narinfos, and conditions. */
export const stagedNarClauses: Clauses<MetadataStore> = {
  "a staged NAR is kept and counted without a narinfo, and evict() leaves it": async (store) => {
    await store.apply(staged);
    assert.deepEqual((await store.findNar(nar.name))?.kept, file);
    assert.equal((await store.stock()).keptBytes, file.fileSize);
    assert.deepEqual((await store.evict(all)).files, []);
    assert.deepEqual(await store.coldest(10), []);
  },

  "a staged NAR is given up at its time, and is like any other when it is kept again": async (
    store,
  ) => {
    await store.apply(staged);
    assert.deepEqual(await store.expireNars({ ...over, atMs: 4_999 }), []);
    assert.deepEqual(await store.expireNars({ ...over, spared: new Set([nar.name]) }), []);
    const { at, fileSize } = file;
    assert.deepEqual(await store.expireNars(over), [{ at, owner: "we", fileSize }]);
    assert.equal((await store.findNar(nar.name))?.kept, undefined);
    const { keptBytes, pendingBytes } = await store.stock();
    assert.deepEqual([keptBytes, pendingBytes], [0, fileSize]);
    await store.apply([{ kind: "nar-gone", at }, ...keep(fileOf(nar.name))]);
    assert.deepEqual(await store.expireNars(over), []);
    assert.equal((await store.evict(all)).files.length, 1);
  },

  "a narinfo ends the stage of its NAR: eviction takes both": async (store) => {
    await store.apply(staged);
    await store.apply([put(a, [])]);
    assert.deepEqual(await store.expireNars(over), []);
    const { narinfos, files } = await store.evict(all);
    assert.deepEqual([narinfos, files.length], [[a], 1]);
  },

  "stage-nar is without effect where a narinfo names the NAR": async (store) => {
    await store.apply([put(a, []), ...keep(file)]);
    await store.apply([stage]);
    assert.deepEqual(await store.expireNars(over), []);
    assert.deepEqual((await store.evict(all)).narinfos, [a]);
  },

  "stage-nar with other facts than the row's is refused": async (store) => {
    await store.apply([put(a, [])]);
    const other = { ...nar, narSize: nar.narSize + 1 };
    await assert.rejects(store.apply([{ ...stage, nar: other }]));
    assert.equal((await store.findNar(nar.name))?.narSize, nar.narSize);
  },

  "a narinfo with a condition is written where narinfo and NAR are as read": async (store) => {
    await store.apply(staged);
    const first = put(a, []);
    await store.apply([{ ...first, onlyIf: { body: undefined, at: file.at } }]);
    assert.deepEqual(await store.findNarinfo(a), first.row);
    const row = { ...first.row, body: `${first.row.body}Sig: x\n` };
    await store.apply([{ ...first, row, onlyIf: { body: first.row.body, at: file.at } }]);
    assert.deepEqual(await store.findNarinfo(a), row);
  },

  "a narinfo that spares a kept NAR is refused where its path has one": async (store) => {
    const spare = { ...put(a, [b]), unlessKept: true };
    await store.apply([spare]);
    await store.apply([spare]);
    await store.apply(keep(file));
    await assert.rejects(store.apply([put(b, []), spare]), Outdated);
    assert.equal(await store.findNarinfo(b), undefined);
    await store.apply([put(a, [b])]);
  },

  "a narinfo whose condition does not hold is refused, with its whole list": async (store) => {
    await store.apply(staged);
    const other = fileOf(nar.name).at;
    for (const onlyIf of [{ body: "x", at: file.at }, { body: undefined, at: other }]) {
      const changes = [put(b, []), { ...put(a, []), onlyIf }];
      await assert.rejects(store.apply(changes), Outdated);
      assert.equal(await store.findNarinfo(a), undefined);
      assert.equal(await store.findNarinfo(b), undefined);
    }
  },
};
