import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { MemoryMetadataStore } from "../support/memory_metadata_store.ts";
import { checkContract, type Harness } from "./contract.ts";
import { metadataStoreClauses } from "./metadata_store_contract.ts";

const harnesses: readonly Harness<MetadataStore>[] = [
  { name: "MemoryMetadataStore", open: () => Promise.resolve(new MemoryMetadataStore()) },
  {
    name: "SqliteMetadataStore",
    open: async () => {
      const store = new SqliteMetadataStore(await openDatabase(":memory:"));
      // A clause may close it itself.
      let closed = false;
      const dispose = store[Symbol.asyncDispose].bind(store);
      return Object.assign(store, {
        async [Symbol.asyncDispose]() {
          if (!closed) await dispose();
          closed = true;
        },
      });
    },
  },
];

for (const harness of harnesses) checkContract(harness, metadataStoreClauses);
