import assert from "node:assert/strict";
import type { Change, MetadataStore, RowLister } from "../../src/metadata/metadata_store.ts";
import type { DocumentPath } from "../../src/nix/document_name.ts";
import { stemOf } from "../../src/nix/nar_name.ts";
import { fileOf, hash, keep, narOf, put, putSigned } from "../support/metadata_rows.ts";
import type { Clauses } from "./contract.ts";

type ListedStore = MetadataStore & RowLister;

/** The keys of a list, page by page. */
type PageReader = (after: string, countMax: number) => Promise<readonly string[]>;

const PATHS = ["a", "b", "c", "d", "e"].map(hash).toSorted();
const STEMS = PATHS.map((path) => stemOf(narOf(`former ${path}`).name)).toSorted();
/** In the order of their bytes, which is not that of a dictionary. */
const DOCUMENTS = ["log/B.drv", "log/_.drv", "log/a.drv", "log/a2.drv", "nix-cache-info"]
  .map((path) => path as DocumentPath);

/** The promises of the lists that a copy reads. */
export const rowListerClauses: Clauses<ListedStore> = {
  "a new database lists nothing": async (store) => {
    for (const [list, page] of Object.entries(listsOf(store))) {
      assert.deepEqual(await page("", 9), [], list);
    }
  },

  "each list names all of its rows, in the order of keys": async (store) => {
    const lists = await fill(store);
    for (const [list, { page, keys }] of Object.entries(lists)) {
      assert.deepEqual(await page("", 9), keys, list);
    }
  },

  "a page begins behind its key, and has no more rows than requested": async (store) => {
    const lists = await fill(store);
    for (const [list, { page, keys }] of Object.entries(lists)) {
      const [first = "", second = ""] = keys;
      assert.deepEqual(await page("", 1), [first], list);
      assert.deepEqual(await page(first, 2), keys.slice(1, 3), list);
      assert.deepEqual(await page(second, 9), keys.slice(2), list);
      assert.deepEqual(await page(keys.at(-1) ?? "", 9), [], list);
    }
  },

  "a page begins behind a key whose row is gone": async (store) => {
    const lists = await fill(store);
    const [, gone = hash("")] = PATHS;
    const [, path] = DOCUMENTS;
    assert.ok(path);
    await store.apply([
      { kind: "remove-narinfo", storePathHash: gone },
      { kind: "remove-document", path },
    ]);
    assert.deepEqual(await lists.narinfos.page(gone, 9), PATHS.slice(2));
    assert.deepEqual(await lists.documents.page(path, 9), DOCUMENTS.slice(2));
  },

  "listNarinfos() tells the last use, and leaves out paths that are only referred to": async (
    store,
  ) => {
    const [a, b, c] = [hash("a"), hash("b"), hash("c")];
    await store.apply([put(a, [b, c], 10), put(b, [a], 20)]);
    await store.apply([{ kind: "touch-narinfo", storePathHash: a, atMs: 30 }]);
    assert.deepEqual(
      await store.listNarinfos("", 9),
      [
        { storePathHash: a, usedAtMs: 30 },
        { storePathHash: b, usedAtMs: 20 },
      ].toSorted((one, other) => one.storePathHash < other.storePathHash ? -1 : 1),
    );
  },

  "listLooseNars() tells the last use of a NAR, with the time until which it is staged": async (
    store,
  ) => {
    const [a, loose, staged] = [hash("a"), narOf(hash("loose")), narOf("staged")];
    await store.apply([put(a, []), put(hash("loose"), []), ...keep(fileOf(loose.name), 40)]);
    await store.apply([{ kind: "stage-nar", nar: staged, untilMs: 9_000 }]);
    await store.apply([{ kind: "remove-narinfo", storePathHash: hash("loose") }]);
    await store.apply([
      { kind: "touch-nar", narName: loose.name, atMs: 5_000 },
      { kind: "touch-nar", narName: staged.name, atMs: 6_000 },
    ]);
    const listed = await store.listLooseNars("", 9);
    assert.deepEqual(
      new Map(listed.map((row) => [row.narName, row])),
      new Map([
        [loose.name, { narName: loose.name, usedAtMs: 5_000, stagedUntilMs: 0 }],
        [staged.name, { narName: staged.name, usedAtMs: 6_000, stagedUntilMs: 9_000 }],
      ]),
    );
  },

  "listDocuments() tells the last use": async (store) => {
    const path = "log/a.drv" as DocumentPath;
    await store.apply([putDocument(path)]);
    await store.apply([{ kind: "touch-document", path, atMs: 7_000 }]);
    assert.deepEqual(await store.listDocuments("", 9), [{ path, usedAtMs: 7_000 }]);
  },
};

function listsOf(store: RowLister) {
  return {
    narinfos: async (...of) => (await store.listNarinfos(...of)).map((row) => row.storePathHash),
    looseNars: async (...of) => (await store.listLooseNars(...of)).map((row) => row.narName),
    signedPaths: async (...of) =>
      (await store.listSignedPaths(...of)).map((row) => row.storePathHash),
    formerNames: async (...of) => (await store.listFormerNames(...of)).map((row) => row.stem),
    documents: async (...of) => (await store.listDocuments(...of)).map((row) => row.path),
  } satisfies Readonly<Record<string, PageReader>>;
}

/** Fills the lists, each out of order. Returns their pages and their keys in order. */
async function fill(store: ListedStore) {
  const staged = PATHS.map((path): Change => (
    { kind: "stage-nar", nar: narOf(`loose ${path}`), untilMs: 9_000 }
  ));
  for (const path of PATHS.toReversed()) await store.apply([put(path, [])]);
  await store.apply(staged);
  await store.apply(DOCUMENTS.toReversed().map(putDocument));
  await store.apply(PATHS.toReversed().map((path) => putSigned(path)));
  for (const stem of STEMS.toReversed()) {
    await store.putFormerNames(narOf(PATHS[0] ?? "").name, [stem]);
  }
  const { narinfos, looseNars, signedPaths, formerNames, documents } = listsOf(store);
  const looseNames = PATHS.map((path) => narOf(`loose ${path}`).name as string).toSorted();
  return {
    narinfos: { page: narinfos, keys: PATHS },
    looseNars: { page: looseNars, keys: looseNames },
    signedPaths: { page: signedPaths, keys: PATHS },
    formerNames: { page: formerNames, keys: STEMS },
    documents: { page: documents, keys: DOCUMENTS },
  };
}

function putDocument(path: DocumentPath): Change {
  return {
    kind: "put-document",
    document: {
      path,
      upstream: "https://cache.example.org",
      type: "text/plain",
      tag: "1",
      bodyBytes: 1,
      mayChange: false,
    },
    pieces: [Uint8Array.of(1)],
    totalBytesMax: Infinity,
    atMs: 40,
  };
}
