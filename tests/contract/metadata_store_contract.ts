import assert from "node:assert/strict";
import {
  type Change,
  type MetadataStore,
  NarNameTaken,
  type NarSource,
} from "../../src/metadata/metadata_store.ts";
import type { FileHash, NarHash } from "../../src/nix/hash.ts";
import { narName } from "../../src/nix/nar_name.ts";
import { type Seal, storedName } from "../../src/nix/stored_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { fileOf, hash, keep, narOf, put, rowOf, sha, source } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";

const [a, b, c] = [hash("a"), hash("b"), hash("c")];

export const metadataStoreClauses: Clauses<MetadataStore> = {
  "a row that was never put is undefined or empty": async (store) => {
    assert.equal(await store.findNarinfo(a), undefined);
    assert.equal(await store.findNar(narOf("x").name), undefined);
    assert.deepEqual(await store.sourcesOf(narOf("x").name), []);
    assert.deepEqual(await store.narinfosOf(narOf("x").name), []);
    assert.deepEqual(await store.referencesOf(a), []);
    assert.deepEqual(await coldestOf(store, 10), []);
  },

  "databaseSize() of a small database counts in no limit": async (store) => {
    await store.apply([put(a, [b])]);
    const { bytes, countedBytes } = await store.databaseSize();
    assert.ok(Number.isSafeInteger(bytes) && bytes >= 0);
    assert.equal(countedBytes, 0);
  },

  "put-narinfo is found again as it was, unicode and quotes too": async (store) => {
    const change = put(a, [b]);
    await store.apply([change]);
    assert.deepEqual(await store.findNarinfo(a), change.row);
    assert.deepEqual(await store.findNar(change.nar.name), change.nar);
    assert.deepEqual(await store.sourcesOf(change.nar.name), [source]);
    assert.deepEqual(await store.narinfosOf(change.nar.name), [a]);
  },

  "a row without our signature comes back without it": async (store) => {
    const { row: { ownSignature: _, ...row }, ...change } = put(a, []);
    await store.apply([{ ...change, row: { ...row, trusted: false } }]);
    assert.deepEqual(await store.findNarinfo(a), { ...row, trusted: false });
  },

  "put-narinfo replaces the text and the references instead of adding to them": async (store) => {
    await store.apply([put(a, [b, c])]);
    const again = put(a, [c]);
    await store.apply([{ ...again, row: { ...again.row, body: "other" } }]);
    assert.deepEqual(await store.referencesOf(a), [c]);
    assert.equal((await store.findNarinfo(a))?.body, "other");
  },

  "references to itself and to paths that are not kept are kept": async (store) => {
    await store.apply([put(a, [a, b])]);
    assert.deepEqual(new Set(await store.referencesOf(a)), new Set([a, b]));
    assert.equal(await store.findNarinfo(b), undefined);
  },

  "graphRows() and narinfoBodies() read the stored ones of many paths": async (store) => {
    const [big, bare] = [put(a, [a, b]), put(b, [])];
    await store.apply([big, bare, ...keep(fileOf(big.nar.name, 2 ** 32 + 1))]);
    const rows = await store.graphRows([a, c, b]);
    const sorted = rows.map((row) => ({ ...row, references: [...row.references].sort() }))
      .sort((one, other) =>
        [a, b].indexOf(one.storePathHash) - [a, b].indexOf(other.storePathHash)
      );
    assert.deepEqual(sorted, [
      {
        ...{ storePathHash: a, narName: big.nar.name, keptBytes: 2 ** 32 + 1 },
        references: [a, b].sort(),
      },
      { storePathHash: b, narName: bare.nar.name, keptBytes: undefined, references: [] },
    ]);
    assert.deepEqual(await store.graphRows([]), []);
    const bodies = await store.narinfoBodies([a, c, b]);
    assert.deepEqual(bodies, new Map([[a, big.row.body], [b, bare.row.body]]));
  },

  "a NAR is seen at its latest time, and no more once its file is lost": async (store) => {
    const { nar, ...change } = put(a, []);
    const seenAt = async () => (await store.findNar(nar.name))?.seenAtMs;
    const putSeen = (seenAtMs: number) => store.apply([{ ...change, nar: { ...nar, seenAtMs } }]);
    await store.apply([{ ...change, nar }]);
    assert.equal(await seenAt(), undefined);
    await putSeen(2 ** 41);
    await putSeen(5);
    await store.apply([{ ...change, nar }]);
    assert.equal(await seenAt(), 2 ** 41);

    const file = fileOf(nar.name);
    await store.apply(keep(file));
    assert.equal(await seenAt(), 2 ** 41);
    await store.apply([{ kind: "nar-marked", at: file.at, owner: "we" }]);
    assert.equal(await seenAt(), 2 ** 41);
    const lost = fileOf(nar.name);
    await store.apply(keep(lost));
    await store.apply([{ kind: "nar-marked", at: lost.at, owner: "we", isLost: true }]);
    assert.equal(await seenAt(), 0);
    await putSeen(7);
    assert.equal(await seenAt(), 7);

    const { nar: uploaded } = put(b, []);
    const upload = fileOf(uploaded.name);
    await store.apply([put(b, []), ...keep(upload)]);
    await store.apply([{ kind: "nar-marked", at: upload.at, owner: "we", isLost: true }]);
    assert.equal((await store.findNar(uploaded.name))?.seenAtMs, undefined);
  },

  "a nar size above 4 GiB survives the round trip": async (store) => {
    const nar = { ...narOf("big"), narSize: 2 ** 33 + 1, fileSize: 2 ** 32 + 1 };
    await store.apply([{ ...put(a, []), nar }]);
    assert.deepEqual(await store.findNar(nar.name), nar);
  },

  "a NAR without file hash and file size comes back without them": async (store) => {
    const { fileHash: _hash, fileSize: _size, ...nar } = narOf("x");
    await store.apply([{ ...put(a, []), nar }]);
    assert.deepEqual(await store.findNar(nar.name), nar);
  },

  "put-narinfo under the name of another NAR is refused as such": async (store) => {
    await store.apply([put(a, [])]);
    const { nar } = put(a, []);
    const liar = { ...put(b, []), nar: { ...nar, narHash: sha("other") as NarHash } };
    const [refused, good] = await Promise.allSettled([
      store.apply([liar]),
      store.apply([put(c, [])]),
    ]);
    assert.ok(refused.status === "rejected" && refused.reason instanceof NarNameTaken);
    assert.equal(good.status, "fulfilled");
    assert.equal(await store.findNarinfo(b), undefined);
    assert.deepEqual(await store.findNar(nar.name), nar);
  },

  "a NAR file's claims stay as they were put, whichever narinfo says others": async (store) => {
    const { nar } = put(a, []);
    await store.apply([put(a, [])]);
    const { fileSize: _size, ...unsized } = nar;
    const { fileHash: _hash, ...unhashed } = nar;
    const file = fileOf(nar.name, 7);
    const refuseOthers = async () => {
      for (const path of [a, b]) {
        for (const claim of [{ ...nar, fileSize: 7 }, unsized, unhashed]) {
          await assert.rejects(store.apply([{ ...put(path, []), nar: claim }]), NarNameTaken);
        }
      }
      assert.equal(await store.findNarinfo(b), undefined);
    };

    await refuseOthers();
    assert.deepEqual(await store.findNar(nar.name), nar);
    await store.apply(keep(file));
    await refuseOthers();
    assert.deepEqual(await store.findNar(nar.name), { ...nar, kept: file });
    await store.apply([
      { kind: "nar-marked", at: file.at, owner: "we" },
      { kind: "remove-narinfo", storePathHash: a },
    ]);
    await assert.rejects(store.apply([{ ...put(a, []), nar: unsized }]), NarNameTaken);
    assert.deepEqual(await store.findNar(nar.name), nar);
    assert.deepEqual(await store.sourcesOf(nar.name), [source]);
  },

  "narinfos of one uncompressed NAR share it, with and without its file hash and size": async (
    store,
  ) => {
    const narHash = sha("nar");
    const name = narName(narHash, "none");
    const nar = { name, compression: "none", narHash: narHash as NarHash, narSize: 7 } as const;
    const said = { ...nar, fileHash: narHash as unknown as FileHash, fileSize: 7 };
    for (const [path, claim] of [[a, nar], [b, said]] as const) {
      await store.apply([{ ...put(path, []), row: rowOf(path, claim), nar: claim }]);
    }
    assert.deepEqual(await store.narinfosOf(name), [a, b]);
    assert.deepEqual(await store.findNar(name), nar);
  },

  "nar-kept and nar-marked say whether an object is kept, and which": async (store) => {
    const { nar } = put(a, []);
    const file = { ...fileOf(nar.name, 2 ** 33), seal: "ino-1" as Seal };
    await store.apply([put(a, []), ...keep(file)]);
    assert.deepEqual((await store.findNar(nar.name))?.kept, file);
    await store.apply([{ kind: "nar-marked", at: file.at, owner: "we" }]);
    assert.deepEqual(await store.findNar(nar.name), nar);
  },

  "nar-sealed changes the seal of the object that is kept, and of no other": async (store) => {
    const { nar } = put(a, []);
    const [first, second] = [fileOf(nar.name), fileOf(nar.name)];
    const keptNow = async () => (await store.findNar(nar.name))?.kept;
    await store.apply([put(a, []), ...keep(first)]);
    assert.deepEqual(await keptNow(), first);
    await store.apply([{ kind: "nar-sealed", at: first.at, seal: "one" as Seal }]);
    assert.deepEqual(await keptNow(), { ...first, seal: "one" });
    await store.apply(keep(second));
    await store.apply([{ kind: "nar-sealed", at: first.at, seal: "two" as Seal }]);
    assert.deepEqual(await keptNow(), second);
  },

  "an object from before ids has the NAR's own name": async (store) => {
    const { nar } = put(a, []);
    const file = { ...fileOf(nar.name), at: storedName(nar.name, "") };
    await store.apply([put(a, []), ...keep(file)]);
    assert.equal((await store.findNar(nar.name, { fresh: true }))?.kept?.at, nar.name);
    assert.deepEqual(await store.keptNars(""), [{ name: nar.name, ...file }]);
  },

  "keptNars() lists the kept NARs under a prefix, by name": async (store) => {
    const nars = ["x", "y", "z"].map((seed) => narOf(seed)).toSorted((a, b) =>
      a.name < b.name ? -1 : 1
    );
    const files = nars.map(({ name }) => ({ name, ...fileOf(name, 7) }));
    for (const [index, nar] of nars.entries()) {
      await store.apply([{ ...put(hash(`${index}`), []), nar }]);
    }
    const [, second, third] = files;
    for (const { name: _, ...file } of files.slice(1)) await store.apply(keep(file));
    assert.deepEqual(await store.keptNars(""), [second, third]);
    assert.deepEqual(await store.keptNars(third?.name.slice(0, 2) ?? ""), [third]);
    assert.deepEqual(await store.keptNars("~"), []);
  },

  "remove-narinfo leaves its NAR and where to fetch it": async (store) => {
    const { nar } = put(a, [b]);
    await store.apply([put(a, [b])]);
    await store.apply([{ kind: "remove-narinfo", storePathHash: a }]);
    assert.equal(await store.findNarinfo(a), undefined);
    assert.deepEqual(await store.referencesOf(a), []);
    assert.deepEqual(await coldestOf(store, 10), []);
    assert.deepEqual(await store.findNar(nar.name), nar);
    assert.deepEqual(await store.sourcesOf(nar.name), [source]);
  },

  "put-source adds an upstream, or replaces where it has the NAR": async (store) => {
    const { nar } = put(a, []);
    const other = { upstream: "http://other", location: "nar/y" };
    await store.apply([put(a, []), { kind: "put-source", narName: nar.name, source: other }]);
    const moved = { ...source, location: "nar/z" };
    await store.apply([{ kind: "put-source", narName: nar.name, source: moved }]);
    const sources = await store.sourcesOf(nar.name);
    assert.deepEqual(sources.toSorted(byUpstream), [moved, other].toSorted(byUpstream));
  },

  "two narinfos of one NAR are both found by it": async (store) => {
    const nar = narOf("shared");
    await store.apply([{ ...put(a, []), nar, row: rowOf(a, nar) }]);
    await store.apply([{ ...put(b, []), nar, row: rowOf(b, nar) }]);
    assert.deepEqual(new Set(await store.narinfosOf(nar.name)), new Set([a, b]));
  },

  "coldest() lists the least recently used first, uses of the NAR counted": async (store) => {
    await store.apply([...stored(a, 1), ...stored(b, 2), ...stored(c, 3)]);
    await store.apply([
      { kind: "touch-narinfo", storePathHash: a, atMs: 3_000 },
      { kind: "touch-nar", narName: put(b, []).nar.name, atMs: 4_000 },
    ]);
    assert.deepEqual(await coldestOf(store, 2), [c, a]);
    assert.deepEqual(await coldestOf(store, 10), [c, a, b]);
  },

  "an older use does not undo a newer one": async (store) => {
    await store.apply([...stored(a, 1_000), ...stored(b, 2_000)]);
    await store.apply([{ kind: "touch-narinfo", storePathHash: b, atMs: 500 }]);
    assert.deepEqual(await coldestOf(store, 2), [a, b]);
  },

  "pins are listed in the order of pinning; pinning again changes nothing": async (store) => {
    const pin = (storePathHash: StorePathHash, pinnedAtMs: number) =>
      ({ kind: "put-pin", pin: { storePathHash, pinnedAtMs } }) as const;
    await store.apply([pin(c, 1), pin(a, 2)]);
    await store.apply([pin(b, 3), pin(c, 4)]);
    assert.deepEqual(await store.pins(), [pin(c, 1).pin, pin(a, 2).pin, pin(b, 3).pin]);
    assert.deepEqual(await store.findPin(c), pin(c, 1).pin);
  },

  "a pin that is removed is gone, and one that never was too": async (store) => {
    await store.apply([{ kind: "put-pin", pin: { storePathHash: a, pinnedAtMs: 1 } }]);
    await store.apply([
      { kind: "remove-pin", storePathHash: a },
      { kind: "remove-pin", storePathHash: b },
    ]);
    assert.deepEqual(await store.pins(), []);
    assert.equal(await store.findPin(a), undefined);
  },

  "a name keeps its newest roots; one that is pinned again is the newest": async (store) => {
    await store.apply([roll("host/x", a, 1, 2), roll("host/x", b, 2, 2)]);
    await store.apply([roll("host/x", a, 3, 2)]);
    assert.deepEqual(await namedIn(store), ["host/x b", "host/x a"], "nothing is pushed out");
    await store.apply([roll("host/x", c, 4, 2)]);
    assert.deepEqual(await store.namedPins(), [
      { name: "host/x", storePathHash: a, pinnedAtMs: 3, keep: 2 },
      { name: "host/x", storePathHash: c, pinnedAtMs: 4, keep: 2 },
    ]);
    assert.deepEqual(await store.pins(), [
      { storePathHash: a, pinnedAtMs: 1, names: ["host/x"], rolls: true },
      { storePathHash: c, pinnedAtMs: 4, names: ["host/x"], rolls: true },
    ]);
    assert.equal(await store.findPin(b), undefined);
    await store.apply([roll("host/x", c, 5, 1)]);
    assert.deepEqual(await rootsIn(store), [c], "a smaller number lets go of the older ones");
  },

  "a root that leaves a name stays if a plain pin or another name holds it": async (store) => {
    const pin = { storePathHash: a, pinnedAtMs: 1 };
    await store.apply([{ kind: "put-pin", pin }, roll("one", a, 2, 1), roll("one", b, 3, 1)]);
    await store.apply([roll("two", b, 4, 1)]);
    assert.deepEqual(await store.findPin(b), {
      ...{ storePathHash: b, pinnedAtMs: 3, names: ["one", "two"], rolls: true },
    });
    await store.apply([roll("one", c, 5, 1)]);
    assert.deepEqual(await rootsIn(store), [a, b, c]);
    assert.deepEqual(await store.findPin(a), pin, "without a name, as before");
    await store.apply([{ kind: "unpin-name", name: "two" }, { kind: "unpin-name", name: "none" }]);
    assert.deepEqual(await rootsIn(store), [a, c]);
    assert.deepEqual(await namedIn(store), ["one c"]);
  },

  "a plain pin of a root that rolls makes it stay, in its old place": async (store) => {
    await store.apply([roll("one", a, 1, 1), roll("two", b, 2, 1)]);
    await store.apply([{ kind: "put-pin", pin: { storePathHash: a, pinnedAtMs: 3 } }]);
    assert.deepEqual(await store.findPin(a), { storePathHash: a, pinnedAtMs: 1, names: ["one"] });
    await store.apply([{ kind: "unpin-name", name: "one" }]);
    assert.deepEqual((await store.pins())[0], { storePathHash: a, pinnedAtMs: 1 });
  },

  "unpinning a root takes it from its names, and older roots stay gone": async (store) => {
    await store.apply([a, b, c].map((root, at) => roll("one", root, at, 2)));
    await store.apply([roll("two", c, 4, 2), { kind: "remove-pin", storePathHash: c }]);
    assert.deepEqual(await namedIn(store), ["one b"]);
    assert.deepEqual(await rootsIn(store), [b]);
    await store.apply([roll("one", a, 5, 2)]);
    assert.deepEqual(await namedIn(store), ["one b", "one a"], "there was room for it");
  },

  "a pin that rolls is put as it is, for a copy of the database": async (store) => {
    const pin = { storePathHash: a, pinnedAtMs: 1, rolls: true } as const;
    await store.apply([{ kind: "put-pin", pin: { ...pin, names: ["one"] } }]);
    assert.deepEqual(await store.pins(), [pin]);
    await store.apply([roll("one", a, 2, 3)]);
    assert.deepEqual(await store.pins(), [{ ...pin, names: ["one"] }]);
  },

  "a list that fails rolls nothing": async (store) => {
    await store.apply([put(a, []), roll("one", a, 1, 1)]);
    const taken = put(b, []);
    const nar = { ...taken.nar, name: put(a, []).nar.name };
    const list: Change[] = [roll("one", b, 2, 1), { ...taken, nar }];
    await assert.rejects(store.apply(list), NarNameTaken);
    assert.deepEqual(await namedIn(store), ["one a"]);
    assert.deepEqual(await rootsIn(store), [a]);
  },

  "two that roll one name at once leave as many as they keep": async (store) => {
    const roots = Array.from({ length: 12 }, (_, index) => hash(`root ${index}`));
    await Promise.all(roots.map((root, at) => store.apply([roll("one", root, at, 3)])));
    assert.equal((await store.namedPins()).length, 3);
    const named = (await store.namedPins()).map(({ storePathHash }) => storePathHash);
    assert.deepEqual(new Set(await rootsIn(store)), new Set(named));
  },

  "notes of a pin stay until others come, and go with the pin": async (store) => {
    const pin = { storePathHash: a, pinnedAtMs: 1 };
    const look = {
      ...{ atMs: 5, paths: 3, missing: 2, upstream: 1, nowhere: 0, uncounted: 2 },
      ...{ examples: ["hello-2.12"], completeAtMs: 4 },
    };
    await store.notePin(a, { keepComplete: true });
    await store.apply([{ kind: "put-pin", pin }]);
    assert.deepEqual(await store.pins(), [pin]);
    await store.notePin(a, { keepComplete: true });
    await store.notePin(a, { look });
    assert.deepEqual(await store.pins(), [{ ...pin, keepComplete: true, look }]);
    await store.apply([{ kind: "put-pin", pin: { ...pin, pinnedAtMs: 9 } }]);
    await store.notePin(a, { keepComplete: false, look: { ...look, atMs: 6 } });
    assert.deepEqual(await store.findPin(a), { ...pin, look: { ...look, atMs: 6 } });
    await store.apply([{ kind: "remove-pin", storePathHash: a }]);
    await store.apply([{ kind: "put-pin", pin }]);
    assert.deepEqual(await store.pins(), [pin]);
  },

  "a pin outlasts the narinfo of its root": async (store) => {
    const pin = { storePathHash: a, pinnedAtMs: 1 };
    await store.apply([put(a, []), { kind: "put-pin", pin }]);
    await store.apply([{ kind: "remove-narinfo", storePathHash: a }]);
    assert.deepEqual(await store.pins(), [pin]);
  },

  "a change of an absent row changes nothing": async (store) => {
    const narName = narOf("x").name;
    const { at } = fileOf(narName);
    await store.apply([
      { kind: "remove-narinfo", storePathHash: a },
      { kind: "touch-narinfo", storePathHash: a, atMs: 1 },
      { kind: "touch-nar", narName, atMs: 1 },
      { kind: "nar-gone", at },
      { kind: "nar-marked", at, owner: "we" },
      { kind: "nar-sealed", at, seal: "x" as Seal },
      { kind: "put-source", narName, source },
    ]);
    assert.deepEqual(await coldestOf(store, 10), []);
    assert.deepEqual(await store.sourcesOf(narName), []);
  },

  "apply() with one impossible change writes none of them": async (store) => {
    await assert.rejects(store.apply([put(a, []), put(b, [c, c])]));
    assert.equal(await store.findNarinfo(a), undefined);
    assert.equal(await store.findNarinfo(b), undefined);
  },

  "an apply() that fails does not touch the one beside it": async (store) => {
    const [bad, good] = await Promise.allSettled([
      store.apply([put(a, [c, c])]),
      store.apply([put(b, [])]),
    ]);
    assert.deepEqual([bad.status, good.status], ["rejected", "fulfilled"]);
    assert.ok(await store.findNarinfo(b));
  },

  "lists of changes that share a key are applied in the order of the calls": async (store) => {
    const texts = Array.from({ length: 30 }, (_, index) => `text ${index}`);
    const said = (storePathHash: StorePathHash, body: string) => {
      const change = put(storePathHash, []);
      return { ...change, row: { ...change.row, body } };
    };
    const pin: Change = { kind: "put-pin", pin: { storePathHash: c, pinnedAtMs: 1 } };
    await Promise.all([
      ...texts.map((text) => store.apply([said(a, text)])),
      store.apply([{ kind: "remove-narinfo", storePathHash: b }]),
      store.apply([said(b, "there")]),
      store.apply([said(c, "on its way")]),
      store.apply([{ kind: "remove-narinfo", storePathHash: c }]),
      store.apply([pin]),
      store.apply([{ kind: "remove-pin", storePathHash: c }]),
    ]);
    assert.equal((await store.findNarinfo(a))?.body, texts.at(-1));
    assert.equal((await store.findNarinfo(b))?.body, "there");
    assert.equal(await store.findNarinfo(c), undefined);
    assert.deepEqual(await store.pins(), []);
  },

  "a refused list leaves the order of the lists beside it": async (store) => {
    const texts = ["first", "second", "third"];
    const outcomes = await Promise.allSettled([
      ...texts.map((body) => {
        const change = put(a, []);
        return store.apply([{ ...change, row: { ...change.row, body } }]);
      }),
      store.apply([put(b, [c, c])]),
    ]);
    assert.equal(outcomes.at(-1)?.status, "rejected");
    assert.equal((await store.findNarinfo(a))?.body, texts.at(-1));
  },

  "forty apply() calls started together all land": async (store) => {
    const hashes = Array.from({ length: 40 }, (_, index) => hash(`path ${index}`));
    await Promise.all(hashes.map((one) => store.apply([put(one, hashes)])));
    for (const one of hashes) assert.equal((await store.findNarinfo(one))?.storePathHash, one);
  },

  "10,000 references of one path come back": async (store) => {
    const many = Array.from({ length: 10_000 }, (_, index) => hash(`reference ${index}`));
    await store.apply([put(a, many)]);
    assert.deepEqual(new Set(await store.referencesOf(a)), new Set(many));
  },

  "an empty list of changes is applied": async (store) => {
    await store.apply([]);
  },

  "a closed store rejects, and does not throw": async (store) => {
    await (store as MetadataStore & AsyncDisposable)[Symbol.asyncDispose]();
    await assert.rejects(store.findNarinfo(a));
    await assert.rejects(store.apply([put(a, [])]));
  },
};

function byUpstream(a: NarSource, b: NarSource): number {
  return a.upstream.localeCompare(b.upstream);
}

/** A narinfo with its NAR file. */
function stored(storePathHash: StorePathHash, atMs: number): readonly Change[] {
  const change = put(storePathHash, [], atMs);
  return [change, ...keep(fileOf(change.nar.name, 1), atMs)];
}

/** The kept paths that may be evicted, in their order. */
async function coldestOf(store: MetadataStore, countMax: number) {
  return (await store.coldest(countMax)).map(({ storePathHash }) => storePathHash);
}

function roll(
  name: string,
  storePathHash: StorePathHash,
  pinnedAtMs: number,
  keep: number,
): Change {
  return { kind: "roll-pin", name, storePathHash, pinnedAtMs, keep };
}

async function rootsIn(store: MetadataStore): Promise<readonly StorePathHash[]> {
  return (await store.pins()).map(({ storePathHash }) => storePathHash);
}

/** Names with their roots, in the order of pinning. */
async function namedIn(store: MetadataStore): Promise<readonly string[]> {
  const letters = new Map([[a, "a"], [b, "b"], [c, "c"]]);
  return (await store.namedPins()).map(({ name, storePathHash }) =>
    `${name} ${letters.get(storePathHash)}`
  );
}
