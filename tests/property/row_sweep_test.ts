import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import type { Change, MetadataStore } from "../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { narNameOf, type StoredName, storedName } from "../../src/nix/stored_name.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { hash, keep, narOf, put, rowOf, sha } from "../support/metadata_rows.ts";
import { checkProperty } from "../support/property.ts";
import { sweepAll } from "../support/swept_rows.ts";

const DAY_MS = 24 * 3_600_000;

/** Few of them, so that they are shared, referred to, and come back. */
const PATHS = Array.from({ length: 6 }, (_, index) => hash(`path ${index}`));
const NARS = Array.from({ length: 4 }, (_, index) => narOf(`nar ${index}`));

const path = fc.constantFrom(...PATHS);
const nar = fc.constantFrom(...NARS);

/** An event, each an hour to a day after the one before. */
const happening = fc.record({
  afterMs: fc.integer({ min: DAY_MS / 24, max: DAY_MS }),
  deed: fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.constant("put"), path, nar, fc.uniqueArray(path)) },
    fc.tuple(fc.constant("remove"), path),
    fc.tuple(fc.constant("use"), path),
    fc.tuple(fc.constant("use nar"), nar),
    { weight: 2, arbitrary: fc.tuple(fc.constant("keep"), nar) },
    fc.tuple(fc.constant("gone"), nar),
    fc.tuple(fc.constant("mark"), nar),
    { weight: 2, arbitrary: fc.tuple(fc.constant("publish"), nar) },
    fc.tuple(fc.constant("pin"), path),
    fc.tuple(fc.constant("unpin"), path),
    fc.tuple(fc.constant("evict")),
    { weight: 3, arbitrary: fc.tuple(fc.constant("sweep"), fc.integer({ min: 0, max: 4 })) },
  ) as fc.Arbitrary<Deed>,
});

type Path = typeof PATHS[number];
type Nar = typeof NARS[number];
type Deed =
  | readonly ["put", Path, Nar, readonly Path[]]
  | readonly ["remove" | "use" | "pin" | "unpin", Path]
  | readonly ["use nar" | "keep" | "gone" | "mark" | "publish", Nar]
  | readonly ["evict"]
  | readonly ["sweep", number];

/** Where rows would lead nowhere, or nothing would ever remove them. */
const BROKEN_SQL = `
  SELECT 'narinfo of no path' FROM narinfo WHERE path_id NOT IN (SELECT id FROM path)
  UNION ALL SELECT 'narinfo of no nar' FROM narinfo WHERE nar_id NOT IN (SELECT id FROM nar)
  UNION ALL SELECT 'use of no narinfo' FROM narinfo_use
    WHERE path_id NOT IN (SELECT path_id FROM narinfo)
  UNION ALL SELECT 'narinfo without use' FROM narinfo
    WHERE path_id NOT IN (SELECT path_id FROM narinfo_use)
  UNION ALL SELECT 'reference of nothing' FROM reference
    WHERE src NOT IN (SELECT path_id FROM narinfo) OR dst NOT IN (SELECT id FROM path)
  UNION ALL SELECT 'protected nothing' FROM protected_path
    WHERE path_id NOT IN (SELECT id FROM path)
  UNION ALL SELECT 'source of no nar' FROM nar_source WHERE nar_id NOT IN (SELECT id FROM nar)
  UNION ALL SELECT 'pending file of no nar' FROM pending_file
    WHERE nar_id NOT IN (SELECT id FROM nar)
  UNION ALL SELECT 'loose and named' FROM loose_nar
    WHERE nar_id IN (SELECT nar_id FROM narinfo) OR nar_id NOT IN (SELECT id FROM nar)
  UNION ALL SELECT 'neither loose nor named' FROM nar
    WHERE id NOT IN (SELECT nar_id FROM narinfo) AND id NOT IN (SELECT nar_id FROM loose_nar)
  UNION ALL SELECT 'wrongly kept' FROM loose_nar l JOIN nar n ON n.id = l.nar_id
    WHERE l.kept <> (n.kept_size IS NOT NULL)`;

const LEFT_OVER_SQL = `SELECT count(*) AS count FROM path
  WHERE id NOT IN (SELECT path_id FROM narinfo) AND id NOT IN (SELECT dst FROM reference)
    AND id NOT IN (SELECT path_id FROM protected_path)`;

checkProperty(
  "sweepRows: SQLite removes exactly the rows that the maps remove, and leaves no dangling rows",
  fc.asyncProperty(fc.array(happening, { maxLength: 40 }), async (happenings) => {
    const database = await openDatabase(":memory:");
    await using sqlite = new SqliteMetadataStore(database);
    await using memory = new MemoryMetadataStore();
    let nowMs = 0;
    for (const { afterMs, deed } of happenings) {
      nowMs += afterMs;
      const outcomes = [];
      for (const store of [sqlite, memory]) outcomes.push(await perform(store, deed, nowMs));
      assert.deepEqual(outcomes[0], outcomes[1]);
      assert.deepEqual(database.prepare(BROKEN_SQL).all(), []);
      if (deed[0] === "sweep") assert.equal(leftOver(database), 0);
    }
    assert.deepEqual(await contentOf(sqlite), await contentOf(memory));
  }),
  { runs: 150 },
);

function leftOver(database: DatabaseSync): number {
  return Number(database.prepare(LEFT_OVER_SQL).get()?.["count"]);
}

async function perform(store: MetadataStore, deed: Deed, atMs: number): Promise<unknown> {
  if (deed[0] === "sweep") {
    const { narinfos, nars } = await sweepAll(store, atMs - deed[1] * DAY_MS);
    return { narinfos: new Set(narinfos), nars: new Set(nars) };
  }
  if (deed[0] === "evict") {
    while (await store.protect(100));
    const order = { bytesMin: Infinity, entriesMax: 1_000, spared: new Set<never>(), owner: "we" };
    const { narinfos, files } = await store.evict(order);
    return { narinfos: new Set(narinfos), files: new Set(files) };
  }
  await store.apply(await changesOf(store, deed, atMs));
  return undefined;
}

async function changesOf(
  store: MetadataStore,
  deed: Exclude<Deed, readonly ["sweep" | "evict", ...unknown[]]>,
  atMs: number,
): Promise<readonly Change[]> {
  switch (deed[0]) {
    case "put": {
      const [, path, nar, references] = deed;
      return [{ ...put(path, references, atMs), nar, row: rowOf(path, nar) }];
    }
    case "remove":
      return [{ kind: "remove-narinfo", storePathHash: deed[1] }];
    case "use":
      return [{ kind: "touch-narinfo", storePathHash: deed[1], atMs }];
    case "pin":
      return [{ kind: "put-pin", pin: { storePathHash: deed[1], pinnedAtMs: atMs } }];
    case "unpin":
      return [{ kind: "remove-pin", storePathHash: deed[1] }];
    case "use nar":
      return [{ kind: "touch-nar", narName: deed[1].name, atMs }];
    case "publish":
      return [{ kind: "nar-publishing", at: objectOf(deed[1], atMs), owner: "we" }];
    case "keep": {
      if (await store.findNar(deed[1].name) === undefined) return [];
      return keep({ at: objectOf(deed[1], atMs), fileHash: sha("kept"), fileSize: 9 }, atMs);
    }
    case "mark": {
      const kept = (await store.findNar(deed[1].name))?.kept;
      return kept === undefined ? [] : [{ kind: "nar-marked", at: kept.at, owner: "we" }];
    }
    case "gone": {
      const pending = await store.pendingFiles();
      return pending.filter(({ at }) => narNameOf(at) === deed[1].name)
        .map(({ at }) => ({ kind: "nar-gone", at }));
    }
  }
}

/** Another one each time: no two deeds have one time. */
function objectOf({ name }: Nar, atMs: number): StoredName {
  return storedName(name, String(atMs).padStart(16, "0"));
}

/** All that can be read of a store. */
async function contentOf(store: MetadataStore): Promise<unknown> {
  while (await store.protect(100));
  const paths = PATHS.map(async (path) => [
    await store.findNarinfo(path),
    new Set(await store.referencesOf(path)),
  ]);
  const nars = NARS.map(async ({ name }) => [
    await store.findNar(name),
    await store.sourcesOf(name),
    new Set(await store.narinfosOf(name)),
  ]);
  return [await Promise.all(paths), await Promise.all(nars), await store.stock()];
}
