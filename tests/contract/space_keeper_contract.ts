import assert from "node:assert/strict";
import type { Change, MetadataStore } from "../../src/metadata/metadata_store.ts";
import type { EvictionOrder } from "../../src/metadata/space_keeper.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import { narNameOf } from "../../src/nix/stored_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { fileOf, hash, keep, narOf, put, rowOf } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";

const [a, b, c, d] = [hash("a"), hash("b"), hash("c"), hash("d")];
const all: EvictionOrder = {
  bytesMin: Infinity,
  entriesMax: 1_000,
  spared: new Set(),
  owner: "we",
};

/** The promises of a metadata store about the bytes it counts, protects, and evicts. */
export const spaceKeeperClauses: Clauses<MetadataStore> = {
  "stock() counts each kept NAR file once, shared or not": async (store) => {
    const nar = narOf("shared");
    await store.apply([{ ...put(a, []), nar, row: rowOf(a, nar) }]);
    const file = fileOf(nar.name, 500);
    await store.apply([{ ...put(b, []), nar, row: rowOf(b, nar) }, ...keep(file)]);
    await store.apply([put(c, []), ...kept(narOf(c).name, 70)]);
    assert.deepEqual(await store.stock(), stock({ keptBytes: 570, keptFiles: 2 }));
    await store.apply([
      { kind: "nar-marked", at: file.at, owner: "we" },
      { kind: "nar-gone", at: file.at },
    ]);
    assert.deepEqual(await store.stock(), stock({ keptBytes: 70, keptFiles: 1 }));
  },

  "evict() takes the coldest first, and no more than the order": async (store) => {
    await store.apply([...stored(a, [], 3), ...stored(b, [], 1), ...stored(c, [], 2)]);
    const evicted = await store.evict({ ...all, bytesMin: 150 });
    assert.deepEqual(evicted.narinfos, [b, c]);
    assert.deepEqual(evicted.files.map((file) => file.fileSize), [100, 100]);
    assert.equal(await store.findNarinfo(b), undefined);
    assert.ok(await store.findNarinfo(a));
    assert.deepEqual(await store.evict({ ...all, entriesMax: 0 }), nothing);
  },

  "a shared NAR file is given up with the last narinfo that leads to it": async (store) => {
    const nar = narOf("shared");
    await store.apply([
      { ...put(a, [], 1), nar, row: rowOf(a, nar) },
      { ...put(b, [], 2), nar, row: rowOf(b, nar) },
      ...kept(nar.name, 100),
    ]);
    const first = await store.evict({ ...all, entriesMax: 1 });
    assert.deepEqual([first.narinfos, first.files], [[a], []]);
    assert.equal((await store.stock()).keptBytes, 100);
    const second = await store.evict({ ...all, entriesMax: 1 });
    assert.deepEqual([second.narinfos, second.files.length], [[b], 1]);
  },

  "pathTimes() tells the last use, and the newest eviction that has a time": async (store) => {
    await store.apply([...stored(a, [], 3), ...stored(b, [], 1), ...stored(c, [], 0)]);
    assert.deepEqual(await store.pathTimes(a), { usedAtMs: 3 });
    assert.deepEqual(await store.pathTimes(c), {});
    await store.evict({ ...all, usedBeforeMs: 2, atMs: 7 });
    await store.apply(stored(b, [], 8));
    assert.deepEqual(await store.pathTimes(b), { usedAtMs: 8, evictedAtMs: 7 });
    assert.deepEqual(await store.pathTimes(c), { evictedAtMs: 7 });
    await store.evict({ ...all, atMs: 9 });
    await store.apply(stored(b, [], 8));
    await store.evict(all);
    assert.deepEqual(await store.pathTimes(b), { evictedAtMs: 9 });
    assert.deepEqual(await store.pathTimes(d), {});
  },

  "a spared oldest prefix does not stall evict()": async (store) => {
    await store.apply([...stored(a, [], 1), ...stored(b, [], 2), ...stored(c, [], 3)]);
    const spared = new Set([narOf(a).name, narOf(b).name]);
    const evicted = await store.evict({ ...all, entriesMax: 1, spared });
    assert.deepEqual(evicted.narinfos, [c]);
  },

  "evict() does not stop at narinfos without a NAR file, and takes some of them along": async (
    store,
  ) => {
    const empties = Array.from({ length: 20 }, (_, index) => hash(`empty ${index}`));
    await store.apply(empties.map((path, index) => put(path, [], index)));
    await store.apply([...stored(a, [], 50), put(b, [], 60)]);
    assert.deepEqual((await store.coldest(10)).map(({ narName }) => narName), [narOf(a).name]);
    const spared = new Set([narOf(empties[0] ?? a).name]);
    const evicted = await store.evict({ ...all, entriesMax: 16, spared });
    assert.deepEqual(evicted.narinfos, [a, ...empties.slice(1, 5)]);
    assert.deepEqual([evicted.entries, evicted.files.length], [1, 1]);
    assert.deepEqual(await store.evict(all), nothing);
    assert.ok(await store.findNarinfo(b));
  },

  "coldest() and evict() follow a NAR file that is kept, given up, and shared": async (store) => {
    const nar = narOf("shared");
    const file = fileOf(nar.name, 30);
    await store.apply([{ ...put(a, [], 1), nar, row: rowOf(a, nar) }, ...keep(file)]);
    await store.apply([{ ...put(b, [], 2), nar, row: rowOf(b, nar) }, ...stored(c, [], 3)]);
    const coldest = async () => (await store.coldest(10)).map((entry) => entry.storePathHash);
    assert.deepEqual(await coldest(), [a, b, c]);
    await store.apply([{ kind: "nar-marked", at: file.at, owner: "we" }]);
    assert.deepEqual(await coldest(), [c]);
    await store.apply([put(a, [], 1), ...kept(nar.name, 30), ...kept(narOf(a).name, 40)]);
    assert.deepEqual(await coldest(), [a, b, c]);
    await store.apply([{ ...put(c, [], 3), nar: narOf(d), row: rowOf(c, narOf(d)) }]);
    const files = (await store.evict(all)).files.map(({ fileSize }) => fileSize);
    assert.deepEqual(files.toSorted(), [100, 30, 40]);
  },

  "evict() takes nothing of a pinned closure, cycles and self-references included": async (
    store,
  ) => {
    await store.apply([...stored(a, [a, b], 1), ...stored(b, [c], 2), ...stored(c, [a], 3)]);
    await store.apply([...stored(d, [a], 4), pin(a)]);
    await settle(store);
    assert.deepEqual((await store.evict(all)).narinfos, [d]);
    assert.deepEqual(await store.evict(all), nothing);
    assert.equal((await store.stock()).protectedBytes, 300);
  },

  "a path that arrives after the pin is protected, with its references": async (store) => {
    await store.apply([...stored(a, [b], 1), pin(a), ...stored(c, [], 2)]);
    await settle(store);
    await store.apply(stored(b, [c], 3));
    await settle(store);
    assert.deepEqual(await store.evict(all), nothing);
    assert.equal((await store.stock()).protectedBytes, 300);
  },

  "a path that arrives while a pin goes is protected with its references": async (store) => {
    await store.apply([...stored(a, [b], 1), pin(a), ...stored(c, [], 2), ...stored(d, [], 3)]);
    await store.apply([pin(d)]);
    await settle(store);
    await store.apply(stored(b, [c], 4));
    await store.apply([{ kind: "remove-pin", storePathHash: d }]);
    await settle(store);
    assert.deepEqual((await store.evict(all)).narinfos, [d]);
  },

  "an unpinned closure may go, except for paths that another pin reaches": async (store) => {
    await store.apply([...stored(a, [c], 1), ...stored(b, [c], 2), ...stored(c, [], 3)]);
    await store.apply([pin(a), pin(b)]);
    await settle(store);
    await store.apply([{ kind: "remove-pin", storePathHash: a }]);
    await settle(store);
    assert.deepEqual((await store.evict(all)).narinfos, [a]);
    assert.equal((await store.stock()).protectedBytes, 200);
    await store.apply([{ kind: "remove-pin", storePathHash: b }]);
    await settle(store);
    assert.deepEqual((await store.evict(all)).narinfos, [b, c]);
  },

  "what leaves a name may go at once, except for paths that another pin reaches": async (store) => {
    const roll = (storePathHash: StorePathHash): Change => (
      { kind: "roll-pin", name: "host", storePathHash, pinnedAtMs: 1, keep: 1 }
    );
    await store.apply([...stored(a, [c], 1), ...stored(b, [c, d], 2), ...stored(c, [], 3)]);
    await store.apply([...stored(d, [], 4), roll(a), pin(d)]);
    await settle(store);
    await store.apply([roll(b)]);
    await settle(store);
    assert.deepEqual((await store.evict(all)).narinfos, [a]);
    assert.equal((await store.stock()).protectedBytes, 300);
    await store.apply([{ kind: "unpin-name", name: "host" }]);
    await settle(store);
    assert.deepEqual((await store.evict(all)).narinfos, [b, c]);
    assert.equal((await store.stock()).protectedBytes, 100);
  },

  "a pinned root that was removed protects its closure when it comes back": async (store) => {
    await store.apply([...stored(a, [b], 1), ...stored(b, [], 2), pin(a)]);
    await settle(store);
    await store.apply([{ kind: "remove-narinfo", storePathHash: a }]);
    await settle(store);
    assert.deepEqual((await store.evict(all)).files.map(({ at }) => narNameOf(at)), [
      narOf(a).name,
      narOf(b).name,
    ]);
    await store.apply([...stored(a, [b], 5), ...stored(b, [], 6)]);
    await settle(store);
    assert.deepEqual(await store.evict(all), nothing);
  },

  "a protected narinfo that moves to another NAR protects that one": async (store) => {
    await store.apply([...stored(a, [], 1), pin(a)]);
    const nar = narOf("other");
    await store.apply([{ ...put(a, [], 2), nar, row: rowOf(a, nar) }, ...kept(nar.name, 30)]);
    await settle(store);
    assert.deepEqual(
      await store.stock(),
      stock({ keptBytes: 130, keptFiles: 2, protectedBytes: 30 }),
    );
    assert.deepEqual((await store.evict(all)).files.map((file) => file.fileSize), [100]);
  },

  "a NAR file that no narinfo names goes by its own age": async (store) => {
    await store.apply([...stored(a, [], 1), ...stored(b, [], 3)]);
    await store.apply([
      { kind: "remove-narinfo", storePathHash: a },
      ...kept(narOf(a).name, 100, 2),
    ]);
    await store.apply([{ kind: "touch-nar", narName: narOf(a).name, atMs: 9 }]);
    const order = (await store.coldest(10)).map((entry) => entry.narName);
    assert.deepEqual(order, [narOf(b).name, narOf(a).name]);
    const evicted = await store.evict(all);
    assert.deepEqual([evicted.narinfos, evicted.entries, evicted.files.length], [[b], 2, 2]);
    assert.deepEqual(await store.coldest(10), []);
  },

  "coldest() goes on behind any entry, also among equals": async (store) => {
    const paths = Array.from({ length: 25 }, (_, index) => hash(`path ${index}`));
    await store.apply(paths.flatMap((path, index) => stored(path, [], Math.floor(index / 5))));
    await store.apply(
      paths.slice(0, 3).map((storePathHash) => (
        { kind: "remove-narinfo", storePathHash }
      )),
    );
    const seen: NarName[] = [];
    let page = await store.coldest(4);
    while (page.length > 0) {
      seen.push(...page.map(({ narName }) => narName));
      page = await store.coldest(4, page.at(-1)?.cursor);
    }
    assert.equal(seen.length, 25);
    assert.equal(new Set(seen).size, 25);
  },
};

/** Too long for what only wraps a store, and reads no closure itself. */
export const largeClosureClauses: typeof spaceKeeperClauses = {
  "a closure of 40,000 paths is protected whole": async (store) => {
    const paths = Array.from({ length: 400 }, (_, index) => hash(`path ${index}`));
    const leaves = Array.from({ length: 40_000 }, (_, index) => hash(`leaf ${index}`));
    const chain = paths.flatMap((path, index) => (
      stored(path, [
        ...paths.slice(index + 1, index + 2),
        ...leaves.slice(index * 100, index * 100 + 100),
      ], 1)
    ));
    await store.apply([...chain, pin(paths[0] ?? a)]);
    await settle(store);
    const last = leaves.at(-1) ?? a;
    await store.apply([...stored(last, [], 1), ...stored(d, [], 2)]);
    await settle(store);
    assert.deepEqual((await store.evict(all)).narinfos, [d]);
  },
};

const nothing = { narinfos: [], files: [], entries: 0, settled: true };

function stock(sums: Partial<Awaited<ReturnType<MetadataStore["stock"]>>>) {
  const none = { keptBytes: 0, keptFiles: 0, pendingBytes: 0, protectedBytes: 0, reservedBytes: 0 };
  return { ...none, ...sums };
}

/** A narinfo with its NAR file of 100 bytes. */
function stored(
  storePathHash: StorePathHash,
  references: readonly StorePathHash[],
  atMs: number,
): readonly Change[] {
  return [put(storePathHash, references, atMs), ...kept(narOf(storePathHash).name, 100, atMs)];
}

function kept(narName: NarName, fileSize: number, atMs = 1): readonly Change[] {
  return keep(fileOf(narName, fileSize), atMs);
}

function pin(storePathHash: StorePathHash): Change {
  return { kind: "put-pin", pin: { storePathHash, pinnedAtMs: 1 } };
}

async function settle(store: MetadataStore): Promise<void> {
  while (await store.protect(100));
}
