import { HotMetadataStore } from "../../src/metadata/hot_metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { LocalNarStore } from "../../src/storage/local/local_nar_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { TestCache } from "../support/test_cache.ts";
import { checkContract, type Harness } from "./contract.ts";
import { memberClauses, type SharedStorage } from "./members_contract.ts";

const SILENT = createLogger("error", { write() {} });

const harnesses: readonly Harness<SharedStorage>[] = [
  { name: "members on SQLite and local files", open: () => Promise.resolve(localStorage()) },
];

for (const harness of harnesses) checkContract(harness, memberClauses);

/** One folder and one database, for any number of members. */
function localStorage(): SharedStorage & AsyncDisposable {
  const resources = new AsyncDisposableStack();
  const { path } = resources.use(tempFolder());
  const nars = new LocalNarStore(`${path}/nar`);
  return {
    nars,
    async member(upstream) {
      const connection = await openDatabase(`${path}/db.sqlite`);
      const database = resources.use(new SqliteMetadataStore(connection));
      const metadata = new HotMetadataStore(database, SILENT);
      const space = { limitBytes: Infinity, owner: crypto.randomUUID() };
      const cache = await TestCache.open({ upstreams: [upstream], metadata, nars, space });
      return { cache, metadata, [Symbol.asyncDispose]: () => cache[Symbol.asyncDispose]() };
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
