import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { damageTable } from "../support/damaged_table.ts";
import { newPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract, type Harness } from "./contract.ts";
import { damageFinderClauses, type DamageScene } from "./damage_finder_contract.ts";

const postgres = PostgresServer.start();

const harnesses: readonly Harness<DamageScene>[] = [
  { name: "SqliteMetadataStore", open: sqliteScene },
  {
    name: "PostgresMetadataStore",
    unavailable: postgresMissing,
    exempt: { "damage in it is named, each fault in one line": "the server checks its own pages" },
    open: async () => {
      const store = await newPostgresStore(postgres);
      const dispose = () => store[Symbol.asyncDispose]();
      return { store, damaged: async () => store, [Symbol.asyncDispose]: dispose };
    },
  },
];

for (const harness of harnesses) checkContract(harness, damageFinderClauses);

async function sqliteScene(): Promise<DamageScene & AsyncDisposable> {
  const opened = new AsyncDisposableStack();
  const path = `${opened.use(tempFolder()).path}/db.sqlite`;
  const store = opened.use(new SqliteMetadataStore(await openDatabase(path)));
  return {
    store,
    async damaged() {
      await store[Symbol.asyncDispose]();
      damageTable(path, "narinfo");
      return opened.use(new SqliteMetadataStore(await openDatabase(path)));
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
