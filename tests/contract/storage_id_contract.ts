import assert from "node:assert/strict";
import { newStorageId } from "../../src/base/storage_id.ts";
import type { StorageIdKeeper } from "../../src/metadata/metadata_store.ts";
import type { Clauses } from "./contract.ts";

export const storageIdClauses: Clauses<StorageIdKeeper> = {
  "a new database has no storage id": async (store) => {
    assert.equal(await store.storageId(), undefined);
  },

  "the first of claims at once stays, and all learn it": async (store) => {
    const claims = Array.from({ length: 8 }, () => store.claimStorageId(newStorageId()));
    const id = await claims[0];
    assert.ok(id);
    for (const claimed of await Promise.all(claims)) assert.equal(claimed, id);
    assert.equal(await store.claimStorageId(newStorageId()), id);
    assert.equal(await store.storageId(), id);
  },
};
