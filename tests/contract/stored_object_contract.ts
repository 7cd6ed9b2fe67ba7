import assert from "node:assert/strict";
import { NOBODY } from "../../src/base/member_id.ts";
import {
  type Change,
  IntentLost,
  Irreplaceable,
  type MetadataStore,
} from "../../src/metadata/metadata_store.ts";
import type { StoredName } from "../../src/nix/stored_name.ts";
import { fileOf, hash, keep, narOf, put } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";

const a = hash("a");
const { name } = narOf(a);
/** Two objects of one NAR. */
const [first, second] = [fileOf(name, 100), fileOf(name, 70)];

/** The promises of a metadata store about objects that come and go. */
export const storedObjectClauses: Clauses<MetadataStore> = {
  "nar-publishing is pending without counting, until the object is kept": async (store) => {
    const { at } = first;
    await store.apply([put(a, []), { kind: "nar-publishing", at, owner: "we" }]);
    assert.deepEqual(await store.pendingFiles(), [{ at, owner: "we", fileSize: 0 }]);
    assert.deepEqual(await sumsOf(store), [0, 0]);
    await store.apply([{ kind: "nar-kept", file: first, owner: "we", atMs: 1 }]);
    assert.deepEqual(await store.pendingFiles(), []);
    assert.deepEqual(await sumsOf(store), [100, 0]);
  },

  "two publishes of one NAR leave one row, and the other object is marked": async (store) => {
    const publishing = (at: StoredName, owner: string): Change => (
      { kind: "nar-publishing", at, owner }
    );
    await store.apply([put(a, []), publishing(first.at, "one"), publishing(second.at, "two")]);
    await Promise.all([
      store.apply([{ kind: "nar-kept", file: first, owner: "one", atMs: 1 }]),
      store.apply([{ kind: "nar-kept", file: second, owner: "two", atMs: 1 }]),
    ]);
    assert.deepEqual((await store.findNar(name))?.kept, second);
    const { at, fileSize } = first;
    assert.deepEqual(await store.pendingFiles(), [{ at, owner: "two", fileSize }]);
    assert.deepEqual(await sumsOf(store), [70, 100]);
    await store.apply([{ kind: "nar-gone", at }]);
    assert.deepEqual(await sumsOf(store), [70, 0]);
    assert.deepEqual((await store.findNar(name))?.kept, second);
  },

  "a recompressed object replaces the one that it was made of, and its row says form and times":
    async (
      store,
    ) => {
      await store.apply([put(a, []), ...keep(first)]);
      const file = { ...second, form: "zstd", keptAtMs: 20_000 } as const;
      const { at, keptAtMs: cameAtMs } = first;
      const replaces = { at, quietSinceMs: 1 };
      const [publishing] = keep(file);
      assert.ok(publishing);
      await store.apply([publishing]);
      await store.apply([{ kind: "nar-kept", file, owner: "we", atMs: 1, replaces }]);
      assert.deepEqual((await store.findNar(name))?.kept, { ...file, cameAtMs });
      assert.deepEqual(await store.keptNars(""), [{ name, ...file, cameAtMs }]);
      assert.deepEqual(await store.pendingFiles(), [{ at, owner: "we", fileSize: 100 }]);
      await store.apply([{ kind: "nar-marked", at: second.at, owner: "we" }]);
      assert.equal((await store.findNar(name))?.kept, undefined);
      const third = fileOf(name, 80);
      await store.apply(keep(third));
      assert.deepEqual((await store.findNar(name))?.kept, third);
    },

  "nar-kept is refused where it replaces an object that is no longer kept": async (store) => {
    await store.apply([put(a, []), ...keep(first), ...keep(fileOf(name, 80))]);
    const [publishing] = keep(second);
    assert.ok(publishing);
    await store.apply([publishing]);
    const replaces = { at: first.at, quietSinceMs: 1 };
    await assert.rejects(
      store.apply([{ kind: "nar-kept", file: second, owner: "we", atMs: 1, replaces }]),
      Irreplaceable,
    );
    assert.equal((await store.findNar(name))?.kept?.fileSize, 80);
  },

  "nar-kept is refused where a client got only a part of the object that it replaces": async (
    store,
  ) => {
    const [publishing] = keep(second);
    assert.ok(publishing);
    await store.apply([put(a, []), ...keep(first), publishing]);
    await store.apply([{ kind: "nar-broken", at: first.at, atMs: 5_000 }]);
    await store.apply([{ kind: "nar-broken", at: first.at, atMs: 4_000 }]);
    assert.equal((await store.findNar(name))?.brokenAtMs, 5_000);
    const replacing = (quietSinceMs: number): Change => {
      const replaces = { at: first.at, quietSinceMs };
      return { kind: "nar-kept", file: second, owner: "we", atMs: 1, replaces };
    };
    await assert.rejects(store.apply([replacing(5_000)]), Irreplaceable);
    assert.deepEqual((await store.findNar(name))?.kept, first);
    await store.apply([replacing(5_001)]);
    assert.deepEqual((await store.findNar(name))?.kept, second);
  },

  "usedNars lists kept NARs by the last use of their narinfos, the newest first": async (store) => {
    const [b, c, d] = [hash("b"), hash("c"), hash("d")];
    await store.apply([put(a, [], 3_000), put(b, [], 9_000), put(c, [], 5_000), put(d, [], 7_000)]);
    await store.apply([...keep(first), ...keep(fileOf(narOf(c).name))]);
    await store.apply(keep({ ...fileOf(narOf(d).name), form: "zstd" }));
    await store.apply([{ kind: "put-pin", pin: { storePathHash: c, pinnedAtMs: 1 } }]);
    while (await store.protect(100));
    const [newest, ...older] = await store.usedNars(10);
    assert.equal(newest?.narName, narOf(d).name);
    assert.deepEqual([newest.form, newest.fileSize], ["zstd", fileOf(narOf(d).name).fileSize]);
    assert.deepEqual(older.map(({ narName }) => narName), [narOf(c).name, name]);
    assert.deepEqual(await store.usedNars(1), [newest]);
    assert.deepEqual(await store.usedNars(10, newest.cursor), older);
  },

  "nar-kept is refused after another member has settled the intent": async (store) => {
    const { at } = second;
    await store.apply([put(a, []), ...keep(first)]);
    await store.apply([{ kind: "nar-publishing", at, owner: "paused" }]);
    await store.apply([{ kind: "nar-gone", at }]);
    const kept: Change = { kind: "nar-kept", file: second, owner: "paused", atMs: 1 };
    await assert.rejects(store.apply([kept]), IntentLost);
    assert.deepEqual((await store.findNar(name))?.kept, first);
    assert.deepEqual(await sumsOf(store), [100, 0]);
  },

  "nar-kept is refused from nar-taken on, and the object is pending until nar-gone": async (
    store,
  ) => {
    const { at } = second;
    await store.apply([put(a, []), ...keep(first)]);
    await store.apply([{ kind: "nar-publishing", at, owner: "paused" }]);
    await store.apply([{ kind: "nar-taken", at }]);
    const kept: Change = { kind: "nar-kept", file: second, owner: "paused", atMs: 1 };
    await assert.rejects(store.apply([kept]), IntentLost);
    assert.deepEqual((await store.findNar(name))?.kept, first);
    assert.deepEqual(await store.pendingFiles(), [{ at, owner: NOBODY, fileSize: 0 }]);
    await store.apply([{ kind: "nar-gone", at }]);
    assert.deepEqual(await store.pendingFiles(), []);
  },

  "nar-stuck counts the object of any intent, or of none, until nar-gone": async (store) => {
    const { at, fileSize } = first;
    const stuck: Change = { kind: "nar-stuck", at, owner: "we", fileSize };
    const intent: Change = { kind: "nar-publishing", at, owner: "we" };
    await store.apply([put(a, [])]);
    for (const before of [[intent], [intent, { kind: "nar-taken", at }], []] as const) {
      await store.apply([...before, stuck]);
      assert.deepEqual(await store.pendingFiles(), [{ at, owner: "we", fileSize }]);
      assert.deepEqual(await sumsOf(store), [0, 100]);
      await store.apply([{ kind: "nar-gone", at }]);
      assert.deepEqual(await store.pendingFiles(), []);
      assert.deepEqual(await sumsOf(store), [0, 0]);
    }
  },

  "nar-taken leaves the size of a marked object": async (store) => {
    const { at, fileSize } = first;
    await store.apply([put(a, []), ...keep(first), { kind: "nar-marked", at, owner: "dead" }]);
    await store.apply([{ kind: "nar-taken", at }]);
    assert.deepEqual(await store.pendingFiles(), [{ at, owner: NOBODY, fileSize }]);
    assert.deepEqual(await sumsOf(store), [0, 100]);
  },

  "nar-taken is refused once the object is kept, and once it is gone": async (store) => {
    const { at } = first;
    await store.apply([put(a, []), ...keep(first)]);
    await assert.rejects(store.apply([{ kind: "nar-taken", at }]), IntentLost);
    assert.deepEqual((await store.findNar(name))?.kept, first);
    await store.apply([{ kind: "nar-marked", at, owner: "we" }, { kind: "nar-gone", at }]);
    await assert.rejects(store.apply([{ kind: "nar-taken", at }]), IntentLost);
    assert.deepEqual(await store.pendingFiles(), []);
  },

  "nar-marked marks an object of any narinfo; it counts until nar-gone": async (store) => {
    const { at } = first;
    await store.apply([put(a, []), ...keep(first)]);
    await store.apply([{ kind: "nar-marked", at, owner: "we" }]);
    assert.equal((await store.findNar(name))?.kept, undefined);
    assert.ok(await store.findNarinfo(a));
    assert.deepEqual(await sumsOf(store), [0, 100]);
    await store.apply([{ kind: "nar-gone", at }]);
    assert.deepEqual(await sumsOf(store), [0, 0]);
    assert.deepEqual(await store.pendingFiles(), []);
  },

  "nar-marked and nar-gone of an old object leave the one that is kept": async (store) => {
    await store.apply([put(a, []), ...keep(first), ...keep(second)]);
    await store.apply([
      { kind: "nar-marked", at: first.at, owner: "we" },
      { kind: "nar-gone", at: first.at },
    ]);
    assert.deepEqual((await store.findNar(name))?.kept, second);
    assert.deepEqual(await sumsOf(store), [70, 0]);
  },

  "a marked object that cannot be removed counts beside the new one": async (store) => {
    const { at, fileSize } = first;
    await store.apply([put(a, []), ...keep(first), { kind: "nar-marked", at, owner: "we" }]);
    await store.apply(keep(second));
    assert.deepEqual(await store.pendingFiles(), [{ at, owner: "we", fileSize }]);
    assert.deepEqual(await sumsOf(store), [70, 100]);
  },

  "a file that evict() marks counts until it is gone": async (store) => {
    const { at, fileSize } = first;
    await store.apply([put(a, []), ...keep(first)]);
    const order = { bytesMin: Infinity, entriesMax: 9, spared: new Set<never>(), owner: "we" };
    const { files } = await store.evict(order);
    assert.deepEqual(files, [{ at, owner: "we", fileSize }]);
    assert.deepEqual(await store.pendingFiles(), files);
    assert.equal((await store.findNar(name))?.kept, undefined);
    assert.deepEqual(await sumsOf(store), [0, 100]);
    await store.apply([{ kind: "nar-gone", at }]);
    assert.deepEqual(await sumsOf(store), [0, 0]);
  },

  "remove-nar removes a NAR that nothing names, with its sources": async (store) => {
    const { nar } = put(a, []);
    const file = fileOf(nar.name, 70);
    const removal = { kind: "remove-nar", narName: nar.name } as const;
    await store.apply([put(a, []), ...keep(file), removal]);
    assert.ok(await store.findNar(nar.name), "a narinfo names it");
    await store.apply([{ kind: "remove-narinfo", storePathHash: a }, removal]);
    assert.ok(await store.findNar(nar.name), "its file is kept");
    await store.apply([{ kind: "nar-marked", at: file.at, owner: "we" }, removal]);
    assert.ok(await store.findNar(nar.name), "an object is left");
    await store.apply([{ kind: "nar-gone", at: file.at }, removal, removal]);
    assert.equal(await store.findNar(nar.name), undefined);
    assert.deepEqual(await store.sourcesOf(nar.name), []);
    assert.equal(await store.areSumsRight(), true);
  },

  "the sums stay right whatever comes and goes": async (store) => {
    await store.apply([put(a, []), ...keep(first), ...keep(second)]);
    await store.apply([{ kind: "nar-marked", at: second.at, owner: "we" }]);
    assert.equal(await store.areSumsRight(), true);
  },
};

/** Bytes that are kept, and that are marked. */
async function sumsOf(store: MetadataStore): Promise<readonly number[]> {
  const { keptBytes, pendingBytes } = await store.stock();
  return [keptBytes, pendingBytes];
}
