import assert from "node:assert/strict";
import { ReferenceWalk } from "../../../../src/cache/prefetch/reference_walk.ts";
import type { StorePathHash } from "../../../../src/nix/store_path.ts";
import { hash, narOf, rowOf } from "../../../support/metadata_rows.ts";

const [app, tool, lib] = [hash("app"), hash("tool"), hash("lib")];

Deno.test("reference walk: a shared reference is looked up and fetched once", async () => {
  const { walk, looks, fetched } = scene();
  walk.begin(newNarinfo(app, [lib]), "1");
  await walk.idle();
  walk.begin(newNarinfo(tool, [lib, app]), "2");
  await walk.idle();
  assert.deepEqual(looks, [lib]);
  assert.deepEqual(fetched, [lib]);
});

Deno.test("reference walk: after forget() a reference is looked up again", async () => {
  const { walk, looks, stored } = scene();
  stored.add(lib);
  for (const requestId of ["1", "2"]) {
    walk.begin(newNarinfo(app, [lib]), requestId);
    await walk.idle();
    walk.begin(newNarinfo(tool, [lib]), requestId);
    await walk.idle();
    walk.forget();
  }
  assert.deepEqual(looks, [lib, lib]);
});

Deno.test("reference walk: one request costs 4,000 narinfos at most, known ones not", async () => {
  const { walk, fetched, stored } = scene();
  const references = Array.from({ length: 4_500 }, (_, at) => hash(`reference-${at}`));
  for (const known of references.slice(0, 100)) stored.add(known);
  walk.begin(newNarinfo(app, references), "1");
  await walk.idle();
  assert.equal(fetched.length, 4_000);
});

function newNarinfo(storePathHash: StorePathHash, references: readonly StorePathHash[]) {
  return { row: rowOf(storePathHash, narOf(storePathHash)), references };
}

/** A walk over metadata that notes each look, with an upstream that has every narinfo. */
function scene() {
  const looks: StorePathHash[] = [];
  const fetched: StorePathHash[] = [];
  const stored = new Set<StorePathHash>();
  const walk = new ReferenceWalk({
    narinfoFetches: {
      isInFlight: () => false,
      prefetch: (storePathHash) => {
        fetched.push(storePathHash);
        return Promise.resolve({ kind: "found", references: [] });
      },
    },
    metadata: {
      findNarinfo: (storePathHash) => {
        looks.push(storePathHash);
        const row = rowOf(storePathHash, narOf(storePathHash));
        return Promise.resolve(stored.has(storePathHash) ? row : undefined);
      },
    },
    negative: { has: () => false },
    pool: { spare: () => ({ urls: ["http://127.0.0.1:1"], isComplete: true }) },
    came: () => undefined,
    count: () => undefined,
  });
  return { walk, looks, fetched, stored };
}
