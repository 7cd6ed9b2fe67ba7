import assert from "node:assert/strict";
import type { CopyMarks } from "../../src/metadata/metadata_store.ts";
import type { Clauses } from "./contract.ts";

export const copyMarksClauses: Clauses<CopyMarks> = {
  "a new database is no copy": async (store) => {
    assert.equal(await store.originalName(), undefined);
    await store.markCopy(undefined);
    assert.equal(await store.originalName(), undefined);
  },

  "a copy has the name of its latest original, until it is none": async (store) => {
    await store.markCopy("one");
    await store.markCopy("two");
    assert.equal(await store.originalName(), "two");
    await store.markCopy(undefined);
    assert.equal(await store.originalName(), undefined);
  },
};
