import assert from "node:assert/strict";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { type NarName, stemOf } from "../../src/nix/nar_name.ts";
import { hash, narOf, put } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";

const a = hash("a");
const [one, other] = [narOf(a), narOf("other")];
const [first, second] = [narOf("first"), narOf("second")].map(({ name }) => stemOf(name));

/** The promises of the names by which clients of another larder remember a NAR. */
export const formerNameClauses: Clauses<MetadataStore> = {
  "a stem that was never put leads to no NAR": async (store) => {
    assert.ok(first);
    await store.apply([put(a, [])]);
    assert.equal(await store.narOfFormerName(first), undefined);
    assert.deepEqual(await store.formerNamesOf(one.name), []);
  },

  "each stem leads to the NAR that it was last put for": async (store) => {
    assert.ok(first && second);
    await store.apply([put(a, []), { kind: "stage-nar", nar: other, untilMs: 9_000 }]);
    await store.putFormerNames(one.name, [first, second]);
    await store.putFormerNames(one.name, [first]);
    assert.equal(await store.narOfFormerName(first), one.name);
    assert.deepEqual(await store.formerNamesOf(one.name), [first, second].sort());
    await store.putFormerNames(other.name, [second]);
    assert.equal(await store.narOfFormerName(second), other.name);
    assert.deepEqual(await store.formerNamesOf(one.name), [first]);
  },

  "a NAR without a row gets no stem, and one whose row goes loses its stems": async (store) => {
    assert.ok(first);
    await store.putFormerNames("unknown.nar" as NarName, [first]);
    assert.equal(await store.narOfFormerName(first), undefined);
    await store.apply([{ kind: "stage-nar", nar: other, untilMs: 9_000 }]);
    await store.putFormerNames(other.name, [first]);
    await store.apply([{ kind: "remove-nar", narName: other.name }]);
    assert.equal(await store.narOfFormerName(first), undefined);
    await store.apply([{ kind: "stage-nar", nar: other, untilMs: 9_000 }]);
    assert.equal(await store.narOfFormerName(first), undefined);
  },
};
