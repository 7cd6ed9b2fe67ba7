import { WorkerClosures } from "../../src/app/workers/worker_closures.ts";
import type {
  ChangeWriter,
  GraphFinder,
  PinFinder,
  PinNoter,
} from "../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { PinnedClosures } from "../../src/pins/pinned_closures.ts";
import { clock } from "../../src/runtime/current.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { newPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { closureListerClauses, type ClosuresScene } from "./closure_lister_contract.ts";
import { checkContract, type Harness } from "./contract.ts";

const postgres = PostgresServer.start();

/** Longer than a slice of time, between which a count may end. */
const ROWS_MS = 5;

type Store = ChangeWriter & GraphFinder & PinFinder & PinNoter & AsyncDisposable;

const harnesses: readonly Harness<ClosuresScene>[] = [
  {
    name: "PinnedClosures of MemoryMetadataStore",
    open: async () => onThisThread(new MemoryMetadataStore()),
  },
  {
    name: "PinnedClosures of SqliteMetadataStore",
    open: async () => onThisThread(new SqliteMetadataStore(await openDatabase(":memory:"))),
  },
  {
    name: "PinnedClosures of PostgresMetadataStore",
    unavailable: postgresMissing,
    open: async () => onThisThread(await newPostgresStore(postgres)),
  },
  { name: "WorkerClosures", open: inWorker },
];

for (const harness of harnesses) checkContract(harness, closureListerClauses);

function onThisThread(store: Store): ClosuresScene & AsyncDisposable {
  let isSpoilt = false;
  const metadata = {
    pins: store.pins.bind(store),
    findPin: store.findPin.bind(store),
    narinfoBodies: store.narinfoBodies.bind(store),
    async graphRows(hashes: Parameters<GraphFinder["graphRows"]>[0]) {
      if (isSpoilt) throw new Error("the database is away");
      await clock.pause(ROWS_MS);
      return await store.graphRows(hashes);
    },
  };
  return {
    lister: new PinnedClosures({ metadata }),
    metadata: store,
    spoil: () => void (isSpoilt = true),
    mend: () => void (isSpoilt = false),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

async function inWorker(): Promise<ClosuresScene & AsyncDisposable> {
  const opened = new AsyncDisposableStack();
  const databasePath = `${opened.use(tempFolder()).path}/db.sqlite`;
  const metadata = opened.use(new SqliteMetadataStore(await openDatabase(databasePath)));
  return {
    lister: new WorkerClosures({ metadata, databasePath }),
    metadata,
    // This thread has it open; the Worker finds no file of that name.
    spoil: () => Deno.renameSync(databasePath, `${databasePath}.away`),
    mend: () => Deno.renameSync(`${databasePath}.away`, databasePath),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
