import { SizeLimit } from "../../src/space/size_limit.ts";
import { type NarPlace, openNars } from "../../src/app/back_ends/nar_back_end.ts";
import { HotMetadataStore } from "../../src/metadata/hot_metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { SILENT } from "../../src/telemetry/logger.ts";
import { openPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { S3_UNAVAILABLE, S3Server } from "../support/s3_server.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { TestCache } from "../support/test_cache.ts";
import { checkContract, type Harness } from "./contract.ts";
import { memberClauses, type SharedStorage } from "./members_contract.ts";

const postgres = PostgresServer.start();
const s3 = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

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
  {
    name: "members on PostgreSQL and S3",
    unavailable: postgresMissing || S3_UNAVAILABLE,
    open: async () => {
      if (s3 === undefined) throw new Error(S3_UNAVAILABLE);
      const url = await postgres?.createMigrated() ?? "";
      return sharedStorage(() => openPostgresStore(url), { kind: "s3", s3: s3.bucket() });
    },
  },
];

for (const harness of harnesses) checkContract(harness, memberClauses);

/** One place of NAR files, a folder by default, and one database, for any number of members. */
async function sharedStorage(
  open: (folder: string) => Promise<MetadataStore & AsyncDisposable>,
  place?: NarPlace,
): Promise<SharedStorage & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const { path } = opening.use(tempFolder());
  const narPlace = place ?? { kind: "local", folder: `${path}/nar` };
  const { nars, graceMs } = opening.use(await openNars(narPlace));
  const resources = opening.move();
  return {
    nars,
    async member(upstream) {
      const database = resources.use(await open(path));
      const metadata = new HotMetadataStore(database, SILENT);
      const space = { limit: SizeLimit.of(Infinity), owner: crypto.randomUUID(), graceMs };
      const cache = await TestCache.open({ upstreams: [upstream], metadata, nars, space });
      return { cache, metadata, [Symbol.asyncDispose]: () => cache[Symbol.asyncDispose]() };
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
