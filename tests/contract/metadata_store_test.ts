import { tracedMetadata } from "../../src/app/stores.ts";
import { HotMetadataStore } from "../../src/metadata/hot_metadata_store.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import type {
  CopyMarks,
  MetadataStore,
  RowLister,
  StorageIdKeeper,
} from "../../src/metadata/metadata_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { newPostgresStore, PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { RecordedSpans } from "../support/recorded_spans.ts";
import { withinRequest } from "../support/within_request.ts";
import { checkContract, type Harness } from "./contract.ts";
import { copyMarksClauses } from "./copy_marks_contract.ts";
import { documentKeeperClauses } from "./document_keeper_contract.ts";
import { formerNameClauses } from "./former_name_contract.ts";
import { historyKeeperClauses } from "./history_keeper_contract.ts";
import { metadataStoreClauses } from "./metadata_store_contract.ts";
import { nameFinderClauses } from "./name_finder_contract.ts";
import { pullKeeperClauses } from "./pull_keeper_contract.ts";
import { rowListerClauses } from "./row_lister_contract.ts";
import { rowSweeperClauses } from "./row_sweeper_contract.ts";
import { signedPathClauses } from "./signed_path_contract.ts";
import { largeClosureClauses, spaceKeeperClauses } from "./space_keeper_contract.ts";
import { storageIdClauses } from "./storage_id_contract.ts";
import { stagedNarClauses } from "./staged_nar_contract.ts";
import { storedObjectClauses } from "./stored_object_contract.ts";

const SILENT = createLogger("error", { write() {} });

const postgres = PostgresServer.start();

const databases: readonly Harness<MetadataStore & StorageIdKeeper & CopyMarks & RowLister>[] = [
  {
    name: "SqliteMetadataStore",
    open: async () => new SqliteMetadataStore(await openDatabase(":memory:")),
  },
  {
    name: "PostgresMetadataStore",
    unavailable: postgresMissing,
    open: () => newPostgresStore(postgres),
  },
];

const harnesses: readonly Harness<MetadataStore>[] = [
  { name: "MemoryMetadataStore", open: () => Promise.resolve(new MemoryMetadataStore()) },
  {
    name: "HotMetadataStore",
    open: async () => {
      const inner = new SqliteMetadataStore(await openDatabase(":memory:"));
      const dispose = () => inner[Symbol.asyncDispose]();
      return Object.assign(new HotMetadataStore(inner, SILENT), { [Symbol.asyncDispose]: dispose });
    },
  },
  {
    name: "traced MetadataStore",
    open: async () => {
      const { tracer } = new RecordedSpans();
      const inner = new SqliteMetadataStore(await openDatabase(":memory:"));
      return withinRequest(tracedMetadata(inner, "sqlite", tracer), tracer);
    },
  },
  ...databases,
];

for (const harness of harnesses) checkContract(harness, metadataStoreClauses);
for (const harness of harnesses) checkContract(harness, nameFinderClauses);
for (const harness of harnesses) checkContract(harness, pullKeeperClauses);
for (const harness of harnesses) checkContract(harness, signedPathClauses);
for (const harness of harnesses) checkContract(harness, spaceKeeperClauses);
for (const harness of harnesses) checkContract(harness, storedObjectClauses);
for (const harness of harnesses) checkContract(harness, stagedNarClauses);
for (const harness of harnesses) checkContract(harness, documentKeeperClauses);
for (const harness of harnesses) checkContract(harness, rowSweeperClauses);
for (const harness of harnesses) checkContract(harness, historyKeeperClauses);
for (const harness of harnesses) checkContract(harness, formerNameClauses);
for (const harness of databases) checkContract(harness, largeClosureClauses);
for (const harness of databases) checkContract(harness, storageIdClauses);
for (const harness of databases) checkContract(harness, copyMarksClauses);
for (const harness of databases) checkContract(harness, rowListerClauses);
