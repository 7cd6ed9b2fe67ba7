import assert from "node:assert/strict";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { hash, put } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";

const [a, b, c, d] = [hash("a"), hash("b"), hash("c"), hash("d")];

export const nameFinderClauses: Clauses<MetadataStore> = {
  "findNamed() finds by a part of the name, in any case, the newest first": async (store) => {
    await store.apply([named(a, "hello-2.12")]);
    await store.apply([named(b, "Hello-2.13-doc"), named(c, "jello")]);
    assert.deepEqual(await store.findNamed("hELLO", 9), [
      { storePathHash: b, name: "Hello-2.13-doc" },
      { storePathHash: a, name: "hello-2.12" },
    ]);
    assert.deepEqual(await foundBy(store, "ello", 2), [c, b]);
    assert.deepEqual(await foundBy(store, "2.12", 9), [a]);
    assert.deepEqual(await foundBy(store, "hello-3", 9), []);
  },

  "findNamed() takes each character as it is": async (store) => {
    await store.apply([named(a, "a_b%c"), named(b, "aXbYc"), named(c, "ä'\"\\")]);
    for (const [text, found] of [["_", [a]], ["%", [a]], ["a.b", []], ["ä'\"\\", [c]]] as const) {
      assert.deepEqual(await foundBy(store, text, 9), found, text);
    }
  },

  "findNamed() looks at names of stored narinfos alone": async (store) => {
    await store.apply([named(a, "one", `References: ${d}-other\nDeriver: ${d}-one.drv`)]);
    const behind = named(b, "two");
    const body = `X: StorePath: /nix/store/${d}-other\nURL: other\n${behind.row.body}`;
    await store.apply([{ ...behind, row: { ...behind.row, body } }, named(c, "x".repeat(211))]);
    assert.deepEqual(await foundBy(store, "two", 9), [b]);
    assert.deepEqual(await foundBy(store, "x".repeat(211), 9), [c]);
    for (const text of ["other", "drv", "URL", a, "/nix", "-one", "\n"]) {
      assert.deepEqual(await foundBy(store, text, 9), [], text);
    }
    await store.apply([named(a, "new")]);
    assert.deepEqual([await foundBy(store, "one", 9), await foundBy(store, "new", 9)], [[], [a]]);
    await store.apply([{ kind: "remove-narinfo", storePathHash: a }]);
    assert.deepEqual(await foundBy(store, "new", 9), []);
  },

  "findNamed() and graphRows() end with the signal of their client": async (store) => {
    await store.apply([named(a, "one")]);
    const gone = AbortSignal.abort(new Error("gone"));
    await assert.rejects(store.findNamed("one", 9, gone), /gone/);
    await assert.rejects(store.graphRows([a], gone), /gone/);
    await assert.rejects(store.narinfoBodies([a], gone), /gone/);
  },

  "findNamed() finds the oldest of six hundred, too": async (store) => {
    const others = Array.from({ length: 599 }, (_, at) => named(hash(`${at}`), `other-${at}`));
    await store.apply([named(a, "needle-1.0"), ...others]);
    assert.deepEqual(await foundBy(store, "needle", 50), [a]);
    assert.equal(new Set(await foundBy(store, "other", 50)).size, 50);
  },
};

async function foundBy(store: MetadataStore, text: string, countMax: number) {
  return (await store.findNamed(text, countMax)).map(({ storePathHash }) => storePathHash);
}

function named(storePathHash: StorePathHash, name: string, further = "") {
  const change = put(storePathHash, []);
  const body = `StorePath: /nix/store/${storePathHash}-${name}\nURL: nar/x\n${further}\n`;
  return { ...change, row: { ...change.row, body } };
}
