import assert from "node:assert/strict";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { NarName } from "../../../src/nix/nar_name.ts";
import type { StorePathHash } from "../../../src/nix/store_path.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { fileOf, hash, keep, put } from "../../support/metadata_rows.ts";
import { sweepAll } from "../../support/swept_rows.ts";

/** Rows of one transaction: a reference that is new adds a path, too. */
const ROWS_MAX = 2 * 512 + 300;

const [a, b] = [hash("a"), hash("b")];

function referencesOf(name: string, count: number): readonly StorePathHash[] {
  return Array.from({ length: count }, (_, index) => hash(`${name} ${index}`));
}

const MANY = referencesOf("many", 5_000);

/** A store that counts the rows of each transaction. */
class Scene implements AsyncDisposable {
  readonly store: SqliteMetadataStore;
  readonly database: DatabaseSync;
  /** Called before each commit. */
  committing: () => void = () => {};
  rowsMost = 0;

  private constructor(database: DatabaseSync) {
    this.database = database;
    const prepare = database.prepare.bind(database);
    const changes = prepare("SELECT total_changes() AS count");
    let before = 0;
    const run = (statement: StatementSync) => {
      const original = statement.run;
      statement.run = (...values) => {
        const count = Number(changes.get()?.["count"]);
        this.rowsMost = Math.max(this.rowsMost, count - before);
        before = count;
        this.committing();
        return Reflect.apply(original, statement, values);
      };
      return statement;
    };
    database.prepare = (sql) => sql === "COMMIT" ? run(prepare(sql)) : prepare(sql);
    this.store = new SqliteMetadataStore(database);
  }

  static async open(): Promise<Scene> {
    return new Scene(await openDatabase(":memory:"));
  }

  count(sql: string): number {
    return Number(this.database.prepare(`SELECT count(*) AS count FROM ${sql}`).get()?.["count"]);
  }

  /** Resolves when nothing is left of narinfos that went. */
  async drained(): Promise<void> {
    await sweepAll(this.store, 0);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.store[Symbol.asyncDispose]();
  }
}

Deno.test("references: many are written in small transactions, and are visible at once", async () => {
  await using scene = await Scene.open();
  const { store } = scene;
  let early = 0;
  scene.committing = () => {
    const isVisible = scene.count("narinfo") > 0;
    if (isVisible && scene.count("reference") < MANY.length) early++;
  };
  await store.apply([put(a, MANY)]);
  assert.equal(early, 0);
  assert.deepEqual(new Set(await store.referencesOf(a)), new Set(MANY));
  assert.ok(scene.rowsMost <= ROWS_MAX, `${scene.rowsMost} rows`);
  assert.equal(scene.count("reference_rest"), 0);
});

Deno.test("references: the same ones again are not written again", async () => {
  await using scene = await Scene.open();
  const { store } = scene;
  await store.apply([put(a, MANY)]);
  const changes = scene.count("reference");
  scene.rowsMost = 0;
  const again = put(a, MANY, 2_000);
  await store.apply([{ ...again, row: { ...again.row, body: "with another signature" } }]);
  assert.ok(scene.rowsMost < 20, `${scene.rowsMost} rows`);
  assert.equal(scene.count("reference"), changes);
  assert.equal((await store.findNarinfo(a))?.body, "with another signature");
});

Deno.test("references: another build replaces all of them, be they many or few", async () => {
  await using scene = await Scene.open();
  const { store } = scene;
  for (const references of [MANY, referencesOf("others", 4_000), [b], MANY, []]) {
    await store.apply([put(a, references)]);
    assert.deepEqual(new Set(await store.referencesOf(a)), new Set(references));
    assert.equal(scene.count("reference"), references.length);
  }
  assert.ok(scene.rowsMost <= ROWS_MAX, `${scene.rowsMost} rows`);
});

Deno.test("references: those of a kept upload stay when an upstream's narinfo comes late", async () => {
  await using scene = await Scene.open();
  const { store } = scene;
  await store.apply([put(a, [b]), ...keep(fileOf(put(a, []).nar.name))]);
  await assert.rejects(store.apply([{ ...put(a, MANY), unlessKept: true }]), /another one came/);
  assert.deepEqual(await store.referencesOf(a), [b]);
  assert.ok(await store.findNarinfo(a));
});

for (
  const [how, remove] of [
    [
      "an eviction",
      (store: SqliteMetadataStore) =>
        store.evict({ bytesMin: 1, entriesMax: 32, spared: new Set<NarName>(), owner: "we" }),
    ],
    [
      "a removal",
      (store: SqliteMetadataStore) => store.apply([{ kind: "remove-narinfo", storePathHash: a }]),
    ],
    ["retention", (store: SqliteMetadataStore) => sweepAll(store, Number.MAX_SAFE_INTEGER)],
  ] as const
) {
  Deno.test(`references: ${how} takes many in small transactions, and leaves none`, async () => {
    await using scene = await Scene.open();
    const { store } = scene;
    const kept = how === "an eviction" ? keep(fileOf(put(a, []).nar.name)) : [];
    await store.apply([put(a, MANY), ...kept]);
    scene.rowsMost = 0;
    await remove(store);
    assert.equal(await store.findNarinfo(a), undefined);
    assert.deepEqual(await store.referencesOf(a), []);
    await scene.drained();
    assert.equal(scene.count("reference") + scene.count("reference_rest"), 0);
    assert.ok(scene.rowsMost <= ROWS_MAX, `${scene.rowsMost} rows`);
  });
}

Deno.test("references: what a crash left in the middle is no part of the next narinfo", async () => {
  await using scene = await Scene.open();
  const { store, database } = scene;
  await store.apply([put(b, [a])]);
  for (const references of [MANY, [b]]) {
    database.exec(`INSERT INTO reference_rest SELECT id FROM path WHERE hash = '${a}';
      INSERT INTO path (hash) VALUES ('left${references.length}');
      INSERT INTO reference SELECT p.id, d.id FROM path p, path d
        WHERE p.hash = '${a}' AND d.hash = 'left${references.length}'`);
    assert.deepEqual(await store.referencesOf(a), []);
    await store.apply([put(a, references)]);
    assert.deepEqual(new Set(await store.referencesOf(a)), new Set(references));
    await store.apply([{ kind: "remove-narinfo", storePathHash: a }]);
    await scene.drained();
  }
});

Deno.test("references: lists of one turn share a transaction up to so many references", async () => {
  await using scene = await Scene.open();
  const { store } = scene;
  await Promise.all(
    Array.from(
      { length: 64 },
      (_, index) => store.apply([put(hash(`node ${index}`), referencesOf(`of ${index}`, 200))]),
    ),
  );
  assert.equal(scene.count("reference"), 64 * 200);
  assert.ok(scene.rowsMost <= ROWS_MAX, `${scene.rowsMost} rows`);
});

Deno.test("references: a pin protects many of one path in small transactions", async () => {
  await using scene = await Scene.open();
  const { store } = scene;
  await store.apply([put(a, [...MANY, a])]);
  await store.apply([{ kind: "put-pin", pin: { storePathHash: a, pinnedAtMs: 1 } }]);
  scene.rowsMost = 0;
  while (await store.protect(128));
  assert.equal(scene.count("protected_path"), MANY.length + 1);
  assert.ok(scene.rowsMost <= ROWS_MAX, `${scene.rowsMost} rows`);
  // Another pin's closure stays when this one goes.
  await store.apply([put(b, [hash("many 1")])]);
  await store.apply([{ kind: "put-pin", pin: { storePathHash: b, pinnedAtMs: 2 } }]);
  await store.apply([{ kind: "remove-pin", storePathHash: a }]);
  while (await store.protect(128));
  assert.equal(scene.count("protected_path"), 2);
});
