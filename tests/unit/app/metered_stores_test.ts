import assert from "node:assert/strict";
import { meteredBoard, meteredFolder, meteredMetadata } from "../../../src/app/stores.ts";
import { HotMetadataStore } from "../../../src/metadata/hot_metadata_store.ts";
import { IntentLost } from "../../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { newStoredName } from "../../../src/nix/stored_name.ts";
import { LocalNarStore } from "../../../src/storage/local/local_nar_store.ts";
import { SILENT } from "../../../src/telemetry/logger.ts";
import type { OperationMeter } from "../../../src/telemetry/metrics.ts";
import { fileOf, hash, keep, narOf, put } from "../../support/metadata_rows.ts";
import { STAYS } from "../../support/staying_client.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const HASH = hash("a");

/** A meter that tells of each operation, and how it ended. */
function told() {
  const operations: string[] = [];
  const meter: OperationMeter<string> = {
    async run(operation, work, { isAnswer, signal } = {}) {
      try {
        const value = await work();
        operations.push(operation);
        return value;
      } catch (error) {
        const end = isAnswer?.(error) ? "refused" : signal?.aborted ? "cancelled" : "failed";
        operations.push(`${operation} ${end}`);
        throw error;
      }
    },
  };
  return { meter, take: () => operations.splice(0) };
}

async function openSqlite(): Promise<SqliteMetadataStore> {
  return new SqliteMetadataStore(await openDatabase(":memory:"));
}

Deno.test("metered stores: a narinfo in memory asks the database nothing", async () => {
  const { meter, take } = told();
  await using sqlite = await openSqlite();
  const metadata = new HotMetadataStore(meteredMetadata(sqlite, meter), SILENT);
  await sqlite.apply([put(HASH, [])]);
  assert.ok(await metadata.findNarinfo(HASH));
  assert.deepEqual(take(), ["read"]);
  for (let times = 0; times < 3; times++) assert.ok(await metadata.findNarinfo(HASH));
  assert.deepEqual(take(), []);
});

Deno.test("metered stores: a write that the rows forbid is an answer of the database", async () => {
  const { meter, take } = told();
  await using sqlite = await openSqlite();
  const metadata = meteredMetadata(sqlite, meter);
  await metadata.apply([put(HASH, [])]);
  const [, kept] = keep(fileOf(narOf(HASH).name));
  await assert.rejects(metadata.apply(kept === undefined ? [] : [kept]), IntentLost);
  assert.deepEqual(take(), ["write", "write refused"]);
});

Deno.test("metered stores: a search whose client left is cancelled, a closed store fails", async () => {
  const { meter, take } = told();
  const sqlite = await openSqlite();
  const metadata = meteredMetadata(sqlite, meter);
  const left = AbortSignal.abort(new Error("the client left"));
  await assert.rejects(metadata.findNamed("a", 1, left), /the client left/);
  await sqlite[Symbol.asyncDispose]();
  await assert.rejects(metadata.pins());
  assert.deepEqual(take(), ["read cancelled", "read failed"]);
});

Deno.test("metered stores: reports of members are operations of the database", async () => {
  const { meter, take } = told();
  await using sqlite = await openSqlite();
  const board = meteredBoard(sqlite.board, meter);
  await board.report("host.1.one", "{}");
  await board.sharedNowMs();
  await board.withdraw("host.1.one");
  assert.deepEqual(take(), ["write", "read", "write"]);
});

Deno.test("metered stores: a folder finds, takes, lists and removes files", async () => {
  const { meter, take } = told();
  using folder = tempFolder();
  const nars = meteredFolder(new LocalNarStore(`${folder.path}/nar`), meter);
  const at = newStoredName(narOf("a").name);
  assert.equal(await nars.open(at, STAYS), undefined);
  Deno.writeTextFileSync(`${folder.path}/file`, "nar");
  await nars.put(at, `${folder.path}/file`);
  const listed = async () => {
    const found = [];
    for await (const file of nars.list("")) found.push(file);
    return found;
  };
  assert.deepEqual(await listed(), [{ at }]);
  await (await nars.open(at, STAYS))?.[Symbol.asyncDispose]();
  assert.equal(await nars.remove(at), true);
  assert.deepEqual(await listed(), []);
  const left = { signal: AbortSignal.abort(new Error("the client left")) };
  await assert.rejects(nars.open(at, left), /the client left/);
  assert.deepEqual(take(), [
    ...["open", "write", "list", "open", "remove", "list", "open cancelled"],
  ]);
});
