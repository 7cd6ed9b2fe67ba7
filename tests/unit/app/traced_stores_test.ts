import assert from "node:assert/strict";
import { tracedMetadata } from "../../../src/app/stores.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { RecordedSpans } from "../../support/recorded_spans.ts";
import { makeStoreObject } from "../../support/store_object.ts";

const { storePathHash } = makeStoreObject({ name: "thing-1.0" });

/** The spans of the queries that `work` makes within a request. */
async function spansOf(work: (metadata: SqliteMetadataStore) => Promise<unknown>) {
  const spans = new RecordedSpans();
  const connection = await openDatabase(":memory:");
  await using metadata = new SqliteMetadataStore(connection);
  const request = spans.tracer.request("GET", "/", new Headers());
  await request?.run(() => work(tracedMetadata(metadata, "sqlite", spans.tracer)));
  return { list: spans.list, tables: tablesOf(connection) };
}

function tablesOf(connection: Awaited<ReturnType<typeof openDatabase>>): ReadonlySet<unknown> {
  const rows = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  return new Set(rows.map((row) => row["name"]));
}

Deno.test("database span: its name is the operation and the table", async () => {
  const { list: [span, ...more] } = await spansOf((metadata) =>
    metadata.findNarinfo(storePathHash)
  );
  assert.equal(more.length, 0);
  assert.deepEqual([span?.name, span?.kind], ["SELECT narinfo", "client"]);
  assert.deepEqual(span?.facts, {
    "db.system.name": "sqlite",
    "db.operation.name": "SELECT",
    "db.collection.name": "narinfo",
    "code.function.name": "findNarinfo",
  });
});

Deno.test("database span: changes of several tables are a batch", async () => {
  const pin = { kind: "put-pin", pin: { storePathHash, pinnedAtMs: 0 } } as const;
  const { list: [span] } = await spansOf((metadata) => metadata.apply([pin]));
  assert.equal(span?.name, "BATCH");
  assert.ok(!("db.collection.name" in span.facts));
});

Deno.test("database span: the tables that are named exist", async () => {
  const { list, tables } = await spansOf(async (metadata) => {
    await metadata.pins();
    await metadata.referencesOf(storePathHash);
    await metadata.stock();
    await metadata.coldest(1);
    await metadata.documentBytes();
    await metadata.protect(1);
  });
  assert.equal(list.length, 6);
  for (const { facts } of list) assert.ok(tables.has(facts["db.collection.name"]));
});
