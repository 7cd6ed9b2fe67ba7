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
  const { walk, fetched, stored, counted } = scene();
  const references = Array.from({ length: 4_500 }, (_, at) => hash(`reference-${at}`));
  for (const known of references.slice(0, 100)) stored.add(known);
  walk.begin(newNarinfo(app, references), "1");
  await walk.idle();
  for (let at = 0; at < fetched.length; at++) {
    walk.followed(fetched[at] ?? lib);
    if (at % 32 === 0) await walk.idle();
    assert.ok(fetched.length <= at + 1 + 64, `${fetched.length} after ${at + 1} were used`);
  }
  await walk.idle();
  assert.equal(fetched.length, 4_000);
  // The others do not wait for ever.
  for (let round = 0; round < 6; round++) walk.forget();
  assert.equal(counted.skipped, 400);
});

Deno.test("reference walk: each 20 references of a narinfo cost as much as one more", async () => {
  const { walk, fetched, references } = scene();
  const large = many(1_000);
  const same = large.slice(0, 200);
  for (const path of large) references.set(path, same);
  walk.begin(newNarinfo(app, large), "1");
  await walk.idle();
  for (let at = 0; at < fetched.length; at++) {
    walk.followed(fetched[at] ?? lib);
    await walk.idle();
  }
  // 4,000 by 1 + 200 / 20, and those in flight at the end.
  assert.ok(fetched.length >= 363 && fetched.length <= 363 + 64, `${fetched.length} narinfos`);
});

Deno.test("reference walk: without a follower it ends at 64, of 10,000 references", async () => {
  const { walk, fetched, counted } = scene();
  walk.begin(newNarinfo(app, many(10_000)), "1");
  await walk.idle();
  assert.equal(fetched.length, 64);
  for (let round = 0; round < 6; round++) walk.forget();
  for (const used of fetched.slice(0, 10)) walk.followed(used);
  await walk.idle();
  assert.equal(fetched.length, 64);
  // All others count as skipped.
  assert.equal(counted.skipped, 10_000 - 64);
});

Deno.test("reference walk: each narinfo that a client uses adds one, once", async () => {
  const { walk, fetched } = scene();
  walk.begin(newNarinfo(app, many(500)), "1");
  await walk.idle();
  for (const used of fetched.slice(0, 10)) walk.followed(used);
  for (const used of fetched.slice(0, 10)) walk.followed(used);
  await walk.idle();
  assert.equal(fetched.length, 74);
  walk.followed(app);
  await walk.idle();
  assert.equal(fetched.length, 74);
});

Deno.test("reference walk: a client's walk takes references that wait in another's", async () => {
  const { walk, fetched } = scene();
  const references = many(200);
  walk.begin(newNarinfo(app, references), "1");
  await walk.idle();
  walk.begin(newNarinfo(tool, references.slice(100, 110)), "2");
  await walk.idle();
  assert.deepEqual(fetched.slice(64), references.slice(100, 110));
});

Deno.test("reference walk: a stored narinfo begins one walk, until forget()", async () => {
  const { walk, fetched, references } = scene();
  references.set(app, [lib]);
  await walk.beginAt(app, "1");
  await walk.idle();
  assert.deepEqual(fetched, [lib]);
  references.set(app, [tool]);
  await walk.beginAt(app, "1");
  await walk.idle();
  assert.deepEqual(fetched, [lib]);
  walk.forget();
  await walk.beginAt(app, "1");
  await walk.idle();
  assert.deepEqual(fetched, [lib, tool]);
});

function many(count: number): readonly StorePathHash[] {
  return Array.from({ length: count }, (_, at) => hash(`reference-${at}`));
}

function newNarinfo(storePathHash: StorePathHash, references: readonly StorePathHash[]) {
  return { row: rowOf(storePathHash, narOf(storePathHash)), references };
}

/** A walk over metadata that notes each look, with an upstream that has every narinfo. */
function scene() {
  const looks: StorePathHash[] = [];
  const fetched: StorePathHash[] = [];
  const stored = new Set<StorePathHash>();
  const references = new Map<StorePathHash, readonly StorePathHash[]>();
  const counted = { failed: 0, skipped: 0 };
  const walk = new ReferenceWalk({
    narinfoFetches: {
      isInFlight: () => false,
      prefetch: (storePathHash) => {
        fetched.push(storePathHash);
        const found = references.get(storePathHash) ?? [];
        return Promise.resolve({ kind: "found", references: found });
      },
    },
    metadata: {
      findNarinfo: (storePathHash) => {
        looks.push(storePathHash);
        const row = rowOf(storePathHash, narOf(storePathHash));
        return Promise.resolve(stored.has(storePathHash) ? row : undefined);
      },
      referencesOf: (storePathHash) => Promise.resolve(references.get(storePathHash) ?? []),
    },
    negative: { has: () => false },
    pool: { spare: () => ({ urls: ["http://127.0.0.1:1"], isComplete: true }) },
    came: () => undefined,
    count: (result, amount) => void (counted[result] += amount),
  });
  return { walk, looks, fetched, stored, references, counted };
}
