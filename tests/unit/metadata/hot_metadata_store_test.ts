import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { HotMetadataStore } from "../../../src/metadata/hot_metadata_store.ts";
import type { NarinfoRow } from "../../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { narName } from "../../../src/nix/nar_name.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const { storePathHash, narHash, narSize } = makeStoreObject({ name: "thing" });
const name = narName(narHash, "none");
const row: NarinfoRow = { storePathHash, body: "text\n", narName: name, trusted: true };
const put = {
  kind: "put-narinfo",
  row,
  references: [],
  nar: { name, compression: "none", narHash, narSize },
  sources: [],
  atMs: 1,
} as const;

Deno.test("HotMetadataStore: what another process changed is seen once it is told", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  await using metadata = new SqliteMetadataStore(await openDatabase(path));
  const hot = new HotMetadataStore(metadata, createLogger("error", { write() {} }));
  await hot.apply([put]);
  assert.ok(await hot.findNarinfo(storePathHash));
  assert.equal(metadata.changedByOthers(), false);

  const other = new DatabaseSync(path);
  other.exec("DELETE FROM narinfo");
  other.close();

  assert.equal(metadata.changedByOthers(), true);
  hot.forgetAll();
  assert.equal(await hot.findNarinfo(storePathHash), undefined);
});

Deno.test("SqliteMetadataStore: its own writes are no change by others", async () => {
  using folder = tempFolder();
  await using metadata = new SqliteMetadataStore(await openDatabase(`${folder.path}/db.sqlite`));
  assert.equal(metadata.changedByOthers(), false);
  await metadata.apply([put]);
  assert.equal(metadata.changedByOthers(), false);
});
