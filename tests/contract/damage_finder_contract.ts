import assert from "node:assert/strict";
import type { DamageFinder, MetadataStore } from "../../src/metadata/metadata_store.ts";
import { fileOf, hash, keep, narOf, put } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";

/** A store without rows. */
export interface DamageScene {
  readonly store: MetadataStore & DamageFinder;
  /** Damages the rows behind the store's back, and opens it again. */
  damaged(): Promise<DamageFinder>;
}

export const damageFinderClauses: Clauses<DamageScene> = {
  "a store that is whole has no damage, with rows and without": async ({ store }) => {
    assert.deepEqual(await store.damage(), []);
    await fill(store);
    assert.deepEqual(await store.damage(), []);
  },

  "damage in it is named, each fault in one line": async ({ store, damaged }) => {
    await fill(store);
    const faults = await (await damaged()).damage();
    assert.ok(faults.length > 0);
    for (const fault of faults) assert.match(fault, /^\w[^\n]+$/);
  },
};

async function fill(store: MetadataStore): Promise<void> {
  const paths = Array.from({ length: 100 }, (_, number) => hash(`path ${number}`));
  await store.apply(paths.flatMap((path) => [put(path, []), ...keep(fileOf(narOf(path).name))]));
}
