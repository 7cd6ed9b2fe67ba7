import { HotMetadataStore } from "../../src/metadata/hot_metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { openPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_programs.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { TestCache } from "../support/test_cache.ts";
import { checkContract, type Harness } from "./contract.ts";
import { memberClauses, type SharedStorage } from "./members_contract.ts";

const SILENT = createLogger("error", { write() {} });

const postgres = PostgresServer.start();

const harnesses: readonly Harness<SharedStorage>[] = [
  {
    name: "members on SQLite and local files",
    open: async () =>
      sharedStorage(async (folder) =>
        new SqliteMetadataStore(await openDatabase(`${folder}/db.sqlite`))
      ),
  },
  {
    name: "members on PostgreSQL and local files",
    unavailable: postgresMissing,
    open: async () => {
      const url = await postgres?.createMigrated() ?? "";
      return sharedStorage(() => openPostgresStore(url));
    },
  },
];

for (const harness of harnesses) checkContract(harness, memberClauses);

/** One folder and one database, for any number of members. */
function sharedStorage(
  open: (folder: string) => Promise<MetadataStore & AsyncDisposable>,
): SharedStorage & AsyncDisposable {
  const resources = new AsyncDisposableStack();
  const { path } = resources.use(tempFolder());
  const nars = new LocalNarStore(`${path}/nar`);
  return {
    nars,
    async member(upstream) {
      const database = resources.use(await open(path));
      const metadata = new HotMetadataStore(database, SILENT);
      const space = { limitBytes: Infinity, owner: crypto.randomUUID() };
      const cache = await TestCache.open({ upstreams: [upstream], metadata, nars, space });
      return { cache, metadata, [Symbol.asyncDispose]: () => cache[Symbol.asyncDispose]() };
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
