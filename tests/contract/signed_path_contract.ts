import assert from "node:assert/strict";
import { type MetadataStore, Outdated } from "../../src/metadata/metadata_store.ts";
import { fileOf, hash, keep, put, putSigned, sha } from "../support/metadata_rows.ts";
import { sweepAll } from "../support/swept_rows.ts";
import type { Clauses } from "./contract.ts";

const [a, b, c] = [hash("a"), hash("b"), hash("c")];
const OTHERS = sha("other facts");

/** The promises of the memory of paths that larder has signed. */
export const signedPathClauses: Clauses<MetadataStore> = {
  "findSigned() of a path that was never signed is undefined": async (store) => {
    await store.apply([put(a, [b])]);
    assert.equal(await store.findSigned(a), undefined);
    assert.deepEqual(await store.signedCounts(), { uploaded: 0, upstream: 0 });
  },

  "signed facts outlive the eviction and the retention of their narinfo": async (store) => {
    const file = fileOf(put(a, []).nar.name);
    await store.apply([put(a, []), putSigned(a), ...keep(file)]);
    await store.apply([put(b, []), putSigned(b, { isUploaded: false })]);
    const order = { bytesMin: 1_000, entriesMax: 9, spared: new Set<never>(), owner: "we" };
    assert.deepEqual((await store.evict(order)).narinfos.toSorted(), [a, b].toSorted());
    await store.apply([{ kind: "nar-gone", at: file.at }]);
    await sweepAll(store, Number.MAX_SAFE_INTEGER);
    assert.deepEqual(await store.findSigned(a), {
      digest: putSigned(a).digest,
      isUploaded: true,
    });
    assert.equal((await store.findSigned(b))?.isUploaded, false);
    assert.deepEqual(await store.signedCounts(), { uploaded: 1, upstream: 1 });
  },

  "put-signed with unlessOther is refused with Outdated, and its list with it": async (store) => {
    await store.apply([putSigned(a)]);
    const other = putSigned(a, { digest: OTHERS, unlessOther: true });
    await assert.rejects(store.apply([put(a, []), other]), Outdated);
    assert.equal(await store.findNarinfo(a), undefined);
    await store.apply([put(a, []), putSigned(a, { unlessOther: true })]);
    assert.equal((await store.findSigned(a))?.digest, putSigned(a).digest);
  },

  "put-signed without it replaces the facts, and moves the path to its kind": async (store) => {
    await store.apply([putSigned(a)]);
    await store.apply([putSigned(a, { digest: OTHERS, isUploaded: false })]);
    assert.deepEqual(await store.findSigned(a), { digest: OTHERS, isUploaded: false });
    assert.deepEqual(await store.signedCounts(), { uploaded: 0, upstream: 1 });
  },

  "a full kind forgets nothing, takes no further path, and leaves the other kind": async (
    store,
  ) => {
    for (const path of [a, b]) await store.apply([putSigned(path, { countMax: 1 })]);
    await store.apply([putSigned(c, { countMax: 1, isUploaded: false })]);
    assert.deepEqual(await store.signedCounts(), { uploaded: 1, upstream: 1 });
    assert.ok(await store.findSigned(a));
    assert.equal(await store.findSigned(b), undefined);
    await store.apply([putSigned(a, { countMax: 1, digest: OTHERS })]);
    assert.equal((await store.findSigned(a))?.digest, OTHERS);
  },

  "forget-signed makes room for another path": async (store) => {
    await store.apply([putSigned(a), putSigned(b, { isUploaded: false })]);
    await store.apply([
      { kind: "forget-signed", storePathHash: a },
      { kind: "forget-signed", storePathHash: c },
    ]);
    assert.equal(await store.findSigned(a), undefined);
    assert.deepEqual(await store.signedCounts(), { uploaded: 0, upstream: 1 });
  },
};
