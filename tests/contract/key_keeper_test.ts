import { MemoryKeyKeeper } from "../support/memory_key_keeper.ts";
import { openPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { checkContract, type Harness } from "./contract.ts";
import { keyKeeperClauses, type SharedKey } from "./key_keeper_contract.ts";

const postgres = PostgresServer.start();

/** SQLite has none: the key is a file of the one machine. */
const harnesses: readonly Harness<SharedKey>[] = [
  {
    name: "MemoryKeyKeeper",
    open: async () => {
      const one = new MemoryKeyKeeper();
      return { one, other: one, async [Symbol.asyncDispose]() {} };
    },
  },
  {
    name: "PostgresKeyKeeper",
    unavailable: postgresMissing,
    open: async () => {
      const opened = new AsyncDisposableStack();
      const url = await postgres?.createMigrated() ?? "";
      const open = async () => opened.use(await openPostgresStore(url)).keys;
      const keys = { one: await open(), other: await open() };
      return { ...keys, [Symbol.asyncDispose]: () => opened.disposeAsync() };
    },
  },
];

for (const harness of harnesses) checkContract(harness, keyKeeperClauses);
