import assert from "node:assert/strict";
import {
  FILE_BYTES,
  foldersOf,
  makeLargeCache,
} from "../../../scripts/bench/eviction/large_cache.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { isStorePathHash } from "../../../src/nix/store_path.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("bench: a pin in a large cache protects the bytes of its closure", async () => {
  using folder = tempFolder();
  const cache = { folder: folder.path, entries: 100, files: 10 };
  await makeLargeCache(cache);
  const database = await openDatabase(foldersOf(cache).database);
  const storePathHash = database.prepare("SELECT hash FROM path WHERE id = 1").get()?.["hash"];
  assert.ok(typeof storePathHash === "string" && isStorePathHash(storePathHash));
  await using metadata = new SqliteMetadataStore(database);
  await metadata.apply([{ kind: "put-pin", pin: { storePathHash, pinnedAtMs: 1 } }]);
  while (await metadata.protect(100));
  const { keptBytes, protectedBytes } = await metadata.stock();
  assert.deepEqual([keptBytes, protectedBytes], [100 * FILE_BYTES, 100 * FILE_BYTES]);
});
