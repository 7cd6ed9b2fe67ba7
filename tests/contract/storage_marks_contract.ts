import assert from "node:assert/strict";
import { newStorageId } from "../../src/base/storage_id.ts";
import type { NarLister } from "../../src/storage/nar_store.ts";
import type { StorageMark, StorageMarks } from "../../src/storage/storage_mark.ts";
import type { Clauses } from "./contract.ts";

/** A store that holds nothing. */
export interface MarkedStore {
  readonly marks: StorageMarks;
  readonly nars: NarLister;
}

const newMark = (): StorageMark => ({ id: newStorageId(), database: "postgres://db/one" });

export const storageMarksClauses: Clauses<MarkedStore> = {
  "read() of a store without a mark is undefined, not an error": async ({ marks }) => {
    assert.equal(await marks.read(), undefined);
  },

  "claim() then read() gives back the mark, which is no NAR file": async ({ marks, nars }) => {
    const mark = newMark();
    assert.deepEqual(await marks.claim(mark), mark);
    assert.deepEqual(await marks.read(), mark);
    assert.deepEqual(await Array.fromAsync(nars.list("")), []);
  },

  "claim() of a claimed store resolves to the mark that is there": async ({ marks }) => {
    const mark = await marks.claim(newMark());
    assert.deepEqual(await marks.claim(newMark()), mark);
    assert.deepEqual(await marks.read(), mark);
  },

  "of claims at once one wins, and all learn which": async ({ marks }) => {
    const claims = Array.from({ length: 8 }, () => marks.claim(newMark()));
    const mark = await claims[0];
    for (const claimed of await Promise.all(claims)) assert.deepEqual(claimed, mark);
    assert.deepEqual(await marks.read(), mark);
  },

  "replace() puts a mark in the place of any other": async ({ marks }) => {
    await marks.claim(newMark());
    const mark = newMark();
    await marks.replace(mark);
    assert.deepEqual(await marks.read(), mark);
  },
};
