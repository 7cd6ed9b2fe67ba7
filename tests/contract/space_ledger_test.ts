import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import type { PostgresMetadataStore } from "../../src/metadata/postgres/postgres_metadata_store.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { MemoryMemberBoard } from "../support/memory_member_board.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { openPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract, type Harness } from "./contract.ts";
import { memberBoardClauses } from "./member_board_contract.ts";
import { type LedgerScene, spaceLedgerClauses } from "./space_ledger_contract.ts";

const postgres = PostgresServer.start();

const memory: Harness<LedgerScene> = {
  name: "MemoryMetadataStore",
  open: async () => {
    const clock = new Clock();
    const one = new MemoryMetadataStore(clock.nowMs);
    return clock.scene({ one, other: one }, () => one[Symbol.asyncDispose]());
  },
};

const harnesses: readonly Harness<Scene<SqliteMetadataStore | PostgresMetadataStore>>[] = [
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

for (const harness of [memory, ...harnesses]) checkContract(harness, spaceLedgerClauses);

for (const { open, ...harness } of harnesses) {
  const openBoards = async () => {
    const { one, other, ...scene } = await open();
    return { ...scene, one: one.board, other: other.board };
  };
  checkContract({ ...harness, open: openBoards }, memberBoardClauses);
}

checkContract({
  name: "MemoryMemberBoard",
  open: async () => {
    const clock = new Clock();
    const one = new MemoryMemberBoard(clock.nowMs);
    return clock.scene({ one, other: one }, async () => {});
  },
}, memberBoardClauses);

interface Scene<Store> {
  readonly one: Store;
  readonly other: Store;
  elapse(ms: number): void;
}

class Clock {
  #nowMs = 10_000_000;
  readonly nowMs = () => this.#nowMs;

  scene<Store>(stores: Pick<Scene<Store>, "one" | "other">, dispose: () => Promise<void>) {
    const elapse = (ms: number) => void (this.#nowMs += ms);
    return { ...stores, elapse, [Symbol.asyncDispose]: dispose };
  }
}
