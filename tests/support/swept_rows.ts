import assert from "node:assert/strict";
import type { MetadataStore, RowSweepOrder } from "../../src/metadata/metadata_store.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";

/** Walks along all pins, then sweeps; returns the removed rows of all batches as one. */
export async function sweepAll(
  store: MetadataStore,
  unusedSinceMs: number,
  more: Partial<RowSweepOrder> = {},
) {
  while (await store.protect(100));
  const order = { rowsMax: 100, spared: new Set<NarName>(), ...more, unusedSinceMs };
  const narinfos: StorePathHash[] = [];
  const nars: NarName[] = [];
  let after = "";
  for (;;) {
    const swept = await store.sweepRows({ ...order, after });
    assert.equal(swept.settled, true);
    narinfos.push(...swept.narinfos);
    nars.push(...swept.nars);
    if (swept.next === undefined) return { narinfos, nars };
    after = swept.next;
  }
}
