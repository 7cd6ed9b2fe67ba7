import { SizeLimit, SpaceBudget } from "../../../src/space/size_limit.ts";
import assert from "node:assert/strict";
import { UNCOUNTED_BYTES } from "../../../src/metadata/space_keeper.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { Accounts } from "../../../src/space/accounts.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";

const LIMIT_BYTES = 8 << 20;
const LARGE_BYTES = 5 << 20;

Deno.test("space: an SQLite database counts in the limit above 16 MiB, free pages do not", async () => {
  const database = await openDatabase(":memory:");
  await using metadata = new SqliteMetadataStore(database);
  const budget = new SpaceBudget(SizeLimit.of(LIMIT_BYTES));
  const log = createLogger("error", { write() {} });
  const accounts = new Accounts({ metadata, owner: "we", budget, log });
  await accounts.beat();
  await accounts.observe();
  assert.deepEqual([budget.usedBytes, budget.databaseExcessBytes], [0, 0]);
  using fits = await accounts.take(LARGE_BYTES) ?? assert.fail("a small database takes no room");
  fits[Symbol.dispose]();
  await accounts.beat();

  database.exec(`CREATE TABLE filler (bytes BLOB);
    INSERT INTO filler VALUES (zeroblob(${UNCOUNTED_BYTES + LARGE_BYTES}))`);
  await accounts.observe();
  const { bytes, countedBytes } = budget.seen.database;
  assert.ok(bytes > UNCOUNTED_BYTES + LARGE_BYTES && countedBytes === bytes - UNCOUNTED_BYTES);
  assert.equal(budget.usedBytes, countedBytes);
  assert.equal(budget.databaseExcessBytes, countedBytes - Math.floor(LIMIT_BYTES / 10));
  assert.equal(await accounts.take(LARGE_BYTES), undefined);
  // The ledger itself refuses, whatever a member believes.
  const wanted = { neededBytes: LARGE_BYTES, wantedBytes: LARGE_BYTES, limitBytes: LIMIT_BYTES };
  assert.equal(await metadata.reserve("we", wanted), undefined);

  database.exec("DELETE FROM filler");
  await accounts.observe();
  assert.equal(budget.usedBytes, 0);
  assert.ok(await accounts.take(LARGE_BYTES));
});
