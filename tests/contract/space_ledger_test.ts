import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { openPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_programs.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract, type Harness } from "./contract.ts";
import { type LedgerScene, spaceLedgerClauses } from "./space_ledger_contract.ts";

const postgres = PostgresServer.start();

const harnesses: readonly Harness<LedgerScene>[] = [
  {
    name: "MemoryMetadataStore",
    open: async () => {
      const clock = new Clock();
      const one = new MemoryMetadataStore(clock.nowMs);
      return clock.scene({ one, other: one }, () => one[Symbol.asyncDispose]());
    },
  },
  {
    name: "SqliteMetadataStore",
    open: async () => {
      const clock = new Clock();
      const one = new SqliteMetadataStore(await openDatabase(":memory:"), clock.nowMs);
      return clock.scene({ one, other: one }, () => one[Symbol.asyncDispose]());
    },
  },
  {
    name: "SqliteMetadataStore, two on one file",
    open: async () => {
      const clock = new Clock();
      const opened = new AsyncDisposableStack();
      const { path } = opened.use(tempFolder());
      const open = async () =>
        opened.use(new SqliteMetadataStore(await openDatabase(`${path}/db.sqlite`), clock.nowMs));
      return clock.scene({ one: await open(), other: await open() }, () => opened.disposeAsync());
    },
  },
  {
    name: "PostgresMetadataStore, two on one database",
    unavailable: postgresMissing,
    open: async () => {
      const clock = new Clock();
      const opened = new AsyncDisposableStack();
      const url = await postgres?.createMigrated() ?? "";
      const open = async () => opened.use(await openPostgresStore(url, clock.nowMs));
      return clock.scene({ one: await open(), other: await open() }, () => opened.disposeAsync());
    },
  },
];

for (const harness of harnesses) checkContract(harness, spaceLedgerClauses);

class Clock {
  #nowMs = 10_000_000;
  readonly nowMs = () => this.#nowMs;

  scene(stores: Pick<LedgerScene, "one" | "other">, dispose: () => Promise<void>) {
    const elapse = (ms: number) => void (this.#nowMs += ms);
    return { ...stores, elapse, [Symbol.asyncDispose]: dispose };
  }
}
