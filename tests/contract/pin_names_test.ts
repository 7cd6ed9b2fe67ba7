import assert from "node:assert/strict";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { hash } from "../support/metadata_rows.ts";
import { openPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract, type Clauses, type Harness } from "./contract.ts";

/** Two members, each with a connection of its own. */
interface Scene {
  readonly one: MetadataStore;
  readonly other: MetadataStore;
}

const KEEP = 3;

const clauses: Clauses<Scene> = {
  "two members that roll one name at once leave as many roots as it keeps": async (scene) => {
    const { one, other } = scene;
    const roots = Array.from({ length: 12 }, (_, index) => hash(`root ${index}`));
    await Promise.all(roots.map((storePathHash, at) =>
      (at % 2 === 0 ? one : other).apply([
        { kind: "roll-pin", name: "host/a", storePathHash, pinnedAtMs: at, keep: KEEP },
      ])
    ));
    const named = await one.namedPins();
    assert.equal(named.length, KEEP);
    const hashes = named.map(({ storePathHash }) => storePathHash);
    for (const store of [one, other]) {
      const pins = await store.pins();
      assert.deepEqual(new Set(pins.map((pin) => pin.storePathHash)), new Set(hashes));
    }
  },

  "of members that pin by hand and roll at once, none undoes the other": async ({ one, other }) => {
    const [held, newest] = [hash("held"), hash("newest")];
    const roll = (storePathHash: typeof held) => (
      { kind: "roll-pin", name: "host/a", storePathHash, pinnedAtMs: 1, keep: 1 } as const
    );
    await one.apply([roll(held)]);
    await Promise.all([
      one.apply([{ kind: "put-pin", pin: { storePathHash: held, pinnedAtMs: 2 } }]),
      other.apply([roll(newest)]),
    ]);
    const pins = (await other.pins()).map(({ storePathHash, rolls }) => [storePathHash, rolls]);
    assert.deepEqual(
      new Map(pins as [string, unknown][]),
      new Map([[held, undefined], [newest, true]]),
    );
  },
};

const postgres = PostgresServer.start();

const harnesses: readonly Harness<Scene>[] = [
  {
    name: "SqliteMetadataStore, two on one file",
    open: () =>
      opened(async (owned) => {
        const { path } = owned.use(tempFolder());
        return async () => new SqliteMetadataStore(await openDatabase(`${path}/db.sqlite`));
      }),
  },
  {
    name: "PostgresMetadataStore, two on one database",
    unavailable: postgresMissing,
    open: () =>
      opened(async () => {
        const url = await postgres?.createMigrated() ?? "";
        return () => openPostgresStore(url);
      }),
  },
];

for (const harness of harnesses) checkContract(harness, clauses);

async function opened(
  prepare: (owned: AsyncDisposableStack) => Promise<() => Promise<MetadataStore & AsyncDisposable>>,
): Promise<Scene & AsyncDisposable> {
  const owned = new AsyncDisposableStack();
  const open = await prepare(owned);
  const [one, other] = [owned.use(await open()), owned.use(await open())];
  return { one, other, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
