import assert from "node:assert/strict";
import { MetadataCopy } from "../../../src/metadata/copy_metadata.ts";
import type { Change, MetadataStore, RowLister } from "../../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import type { DocumentPath } from "../../../src/nix/document_name.ts";
import { stemOf } from "../../../src/nix/nar_name.ts";
import type { Seal } from "../../../src/nix/stored_name.ts";
import type { StorePathHash } from "../../../src/nix/store_path.ts";
import {
  fileOf,
  hash,
  keep,
  narOf,
  put,
  putSigned,
  rowOf,
  sha,
} from "../../support/metadata_rows.ts";
import { newPostgresStore, PostgresServer } from "../../support/postgres.ts";
import { postgresMissing } from "../../support/postgres_missing.ts";
import { testUnless } from "../../support/program.ts";

type Store = MetadataStore & RowLister & AsyncDisposable;

const server = PostgresServer.start();
const openSqlite = async () => new SqliteMetadataStore(await openDatabase(":memory:"));
const openPostgres = () => newPostgresStore(server);

const confirm = () => Promise.resolve();

const [a, b, c] = [hash("a"), hash("b"), hash("c")];
const [LOOSE, STAGED] = [narOf("loose"), narOf("staged")];
const LOG = "log/a.drv" as DocumentPath;
/** More than one page. */
const EMPTIES = Array.from({ length: 300 }, (_, at) => hash(`empty ${at}`));
const FILE = { ...fileOf(narOf(a).name, 500), seal: "ino-1" as Seal };

const FILE_NAR = narOf(a).name;
const FORMER_NAME = stemOf(narOf("former").name);

const ROWS: readonly (readonly Change[])[] = [
  [put(a, [b, c], 10), ...keep(FILE, 10), put(b, [a], 20)],
  EMPTIES.map((path, at) => put(path, [a], at)),
  [{ ...put(c, [], 5), nar: LOOSE, row: rowOf(c, LOOSE) }, ...keep(fileOf(LOOSE.name, 70), 30)],
  [{ kind: "remove-narinfo", storePathHash: c }],
  [{ kind: "stage-nar", nar: STAGED, untilMs: 9_000 }, ...keep(fileOf(STAGED.name, 7), 1)],
  [putSigned(a), putSigned(hash("evicted"), { isUploaded: false })],
  [{ kind: "put-pin", pin: { storePathHash: b, pinnedAtMs: 3 } }],
  [{ kind: "put-pin", pin: { storePathHash: a, pinnedAtMs: 4 } }],
  [{
    kind: "put-document",
    document: {
      path: LOG,
      upstream: "https://cache.example.org",
      type: "text/plain",
      tag: "1",
      bodyBytes: 3,
      mayChange: true,
    },
    pieces: [Uint8Array.of(1, 2), Uint8Array.of(3)],
    totalBytesMax: Infinity,
    atMs: 40,
  }],
];

const WAYS: Readonly<Record<string, readonly [() => Promise<Store>, () => Promise<Store>]>> = {
  "SQLite to PostgreSQL": [openSqlite, openPostgres],
  "PostgreSQL to SQLite": [openPostgres, openSqlite],
};

for (const [way, [openFrom, openTo]] of Object.entries(WAYS)) {
  testUnless(postgresMissing, `copy: ${way}, all rows, and then only changed ones`, async () => {
    await using from = await openFrom();
    await using to = await openTo();
    for (const changes of ROWS) await from.apply(changes);
    await from.putFormerNames(FILE_NAR, [FORMER_NAME]);
    await from.recordHistory([{ tier: "lifetime", atMs: 0, figure: "nar_hits", amount: 7 }], []);
    while (await from.protect(1_000));
    const copy = new MetadataCopy({ from, to, confirm });
    const { signal } = new AbortController();

    await copy.pass(signal);
    assert.deepEqual(await contentOf(to), await contentOf(from));
    assert.equal(await to.areSumsRight(), true);
    assert.equal((await copy.pass(signal)).copied, 0);

    // A server goes on with the old database.
    const file = fileOf(narOf(a).name, 600);
    await from.apply([...keep(file, 50), { kind: "nar-gone", at: FILE.at }]);
    await from.apply([put(hash("new"), [a], 60)]);
    assert.equal((await copy.pass(signal)).copied, 2);
    assert.deepEqual(await contentOf(to), await contentOf(from));
    assert.deepEqual(await to.pendingFiles(), []);
  });
}

for (const [way, [openFrom, openTo]] of Object.entries(WAYS)) {
  testUnless(
    postgresMissing,
    `copy: ${way}, rows removed meanwhile go there too`,
    async () => {
      await using from = await openFrom();
      await using to = await openTo();
      for (const changes of ROWS) await from.apply(changes);
      while (await from.protect(1_000));
      const copy = new MetadataCopy({ from, to, confirm });
      const { signal } = new AbortController();
      await copy.pass(signal);

      await from.apply([
        { kind: "remove-pin", storePathHash: b },
        { kind: "remove-narinfo", storePathHash: a },
        { kind: "nar-marked", at: FILE.at, owner: "we" },
        { kind: "nar-gone", at: FILE.at },
        { kind: "remove-nar", narName: FILE_NAR },
        { kind: "remove-document", path: LOG },
        { kind: "forget-signed", storePathHash: a },
        putSigned(hash("evicted"), { digest: sha("others"), isUploaded: true }),
        // Pinned again: the last one now.
        { kind: "remove-pin", storePathHash: a },
        { kind: "put-pin", pin: { storePathHash: a, pinnedAtMs: 9 } },
        {
          kind: "put-source",
          narName: LOOSE.name,
          source: { upstream: "https://b", location: "l" },
        },
      ]);
      while (await from.protect(1_000));
      const { copied, removed } = await copy.pass(signal);

      assert.deepEqual(
        [copied, removed],
        [3, 5],
        "a pin, a source and signed facts; a pin, two rows, signed facts, a document",
      );
      assert.deepEqual(await contentOf(to), await contentOf(from));
      assert.equal(await to.findNar(FILE_NAR), undefined);
      assert.equal(await to.areSumsRight(), true);
      assert.deepEqual(await to.pendingFiles(), []);
      const last = await copy.pass(signal);
      assert.deepEqual([last.copied, last.removed], [0, 0]);
    },
  );
}

for (const [way, [openFrom, openTo]] of Object.entries(WAYS)) {
  testUnless(postgresMissing, `copy: ${way}, pins that roll keep names and places`, async () => {
    await using from = await openFrom();
    await using to = await openTo();
    const roll = (name: string, storePathHash: StorePathHash, pinnedAtMs: number): Change => (
      { kind: "roll-pin", name, storePathHash, pinnedAtMs, keep: 2 }
    );
    await from.apply([roll("one", a, 1), roll("two", b, 2), roll("one", b, 3), roll("one", a, 4)]);
    const copy = new MetadataCopy({ from, to, confirm });
    const { signal } = new AbortController();
    await copy.pass(signal);
    assert.deepEqual(await contentOf(to), await contentOf(from));
    assert.equal((await copy.pass(signal)).copied, 0);

    // A server goes on: a root changes its name, one is pinned by hand, one rolls off.
    await from.apply([{ kind: "unpin-name", name: "two" }, roll("three", b, 5)]);
    await from.apply([{ kind: "put-pin", pin: { storePathHash: a, pinnedAtMs: 6 } }]);
    await from.apply([roll("one", c, 7)]);
    await copy.pass(signal);
    assert.deepEqual(await contentOf(to), await contentOf(from));
    assert.deepEqual((await from.pins()).map(({ names }) => names), [["one"], ["three"], ["one"]]);
    const { copied, removed } = await copy.pass(signal);
    assert.deepEqual([copied, removed], [0, 0]);
  });
}

testUnless(postgresMissing, "copy: a NAR name that stands for another NAR now", async () => {
  await using from = await openSqlite();
  await using to = await openPostgres();
  await to.apply([put(a, []), ...keep(FILE, 10), put(b, [])]);
  const nar = { ...narOf(a), narSize: 7 };
  const file = fileOf(nar.name, 900);
  await from.apply([{ ...put(a, []), nar }, ...keep(file, 10), put(b, [])]);
  const copy = new MetadataCopy({ from, to, confirm });
  const { signal } = new AbortController();

  assert.equal((await copy.pass(signal)).copied, 1);
  assert.deepEqual(await to.findNar(nar.name), await from.findNar(nar.name));
  assert.equal((await copy.pass(signal)).copied, 0);
  assert.equal(await to.areSumsRight(), true);
});

testUnless(postgresMissing, "copy: nothing changes once a larder uses the new one", async () => {
  await using from = await openSqlite();
  await using to = await openPostgres();
  await to.apply([put(a, []), { kind: "put-pin", pin: { storePathHash: a, pinnedAtMs: 3 } }]);
  await from.apply([put(b, [])]);
  const copy = new MetadataCopy({ from, to, confirm: () => Promise.reject(new Error("used")) });

  await assert.rejects(copy.pass(new AbortController().signal), /used/);
  assert.ok(await to.findPin(a));
  assert.equal(await to.findNarinfo(b), undefined);
});

testUnless(postgresMissing, "copy: one that ended early goes on where it was", async () => {
  await using from = await openSqlite();
  await using to = await openPostgres();
  for (const changes of ROWS) await from.apply(changes);
  const copy = new MetadataCopy({ from, to, confirm });
  const ending = new AbortController();
  const apply = to.apply.bind(to);
  let lists = 0;
  to.apply = (changes, options) => {
    if (++lists === 100) ending.abort(new Error("stopped"));
    return apply(changes, options);
  };

  await assert.rejects(copy.pass(ending.signal), /stopped/);
  const before = copy.progress.copied;
  const { copied } = await copy.pass(new AbortController().signal);

  assert.ok(before >= 100 && copied > 0, `${before} and ${copied}`);
  assert.equal(before + copied, 300 + 2 + 2 + 2 + 2 + 1);
  assert.deepEqual(await contentOf(to), await contentOf(from));
});

/** Everything that a copy must have. */
async function contentOf(store: Store) {
  const listed = await store.listNarinfos("", 10_000);
  const loose = await store.listLooseNars("", 10_000);
  const names = [a, b].map((path) => narOf(path).name);
  const document = await store.findDocument(LOG);
  const { id = 0, ...facts } = document ?? {};
  return {
    listed,
    loose,
    signed: await store.listSignedPaths("", 10_000),
    signedCounts: await store.signedCounts(),
    narinfos: await Promise.all(
      listed.map(({ storePathHash }) => store.findNarinfo(storePathHash)),
    ),
    references: new Set(await store.referencesOf(a)),
    nars: await Promise.all([...names, LOOSE.name, STAGED.name].map((name) => store.findNar(name))),
    sources: new Set(await store.sourcesOf(LOOSE.name)),
    kept: await store.keptNars(""),
    stock: await store.stock(),
    pins: await store.pins(),
    namedPins: await store.namedPins(),
    formerNames: await store.listFormerNames("", 10_000),
    history: await store.history(),
    document: facts,
    pieces: [await store.documentPiece(id, 0), await store.documentPiece(id, 1)],
  };
}
