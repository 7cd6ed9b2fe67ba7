import assert from "node:assert/strict";
// @ts-types="../../../src/metadata/postgres/pg.d.ts"
import pg from "pg";
import { readMigrations } from "../../../src/metadata/migrations.ts";
import { Failure } from "../../../src/base/failure.ts";
import type { Changed } from "../../../src/metadata/change_feed.ts";
import type { Change } from "../../../src/metadata/metadata_store.ts";
import { Database } from "../../../src/metadata/postgres/database.ts";
import { PostgresMetadataStore } from "../../../src/metadata/postgres/postgres_metadata_store.ts";
import { Writer } from "../../../src/metadata/postgres/writer.ts";
import { PinnedClosures } from "../../../src/pins/pinned_closures.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { eventually } from "../../support/eventually.ts";
import { FaultProxy } from "../../support/fault_proxy.ts";
import { changesOf, hashOfNode } from "../../support/stored_graph.ts";
import { fileOf, hash, keep, put } from "../../support/metadata_rows.ts";
import { openPostgresStore, PostgresServer } from "../../support/postgres.ts";
import { postgresMissing } from "../../support/postgres_missing.ts";
import { testUnless } from "../../support/program.ts";

const log = createLogger("error", { write() {} });
const server = PostgresServer.start();
const test = (name: string, fn: (server: PostgresServer) => Promise<void>) =>
  testUnless(postgresMissing, `postgres: ${name}`, async () => {
    assert.ok(server);
    await fn(server);
  });

const [a, b] = [put(hash("a"), []), put(hash("b"), [])];
const file = fileOf(a.nar.name);

test("a change whose answer was lost is sent again, and written once", async (server) => {
  const url = await server.createMigrated();
  await using store = await openPostgresStore(url);
  await using database = new Database({ url, log });
  // Each transaction commits, and its answer is lost once.
  const query: Database["query"] = async (text, waitMs) => {
    await database.query(text, waitMs);
    return await database.query(text, waitMs);
  };
  await using writer = new Writer({ query });
  await store.beat("one", { reservedBytes: 1_000, limitBytes: Infinity });

  await writer.apply([a], false);
  const [intent, kept] = keep(file, 1, "one");
  assert.ok(intent && kept?.kind === "nar-kept");
  await writer.apply([intent], false);
  await writer.apply([{ ...kept, reservedBytes: 100 }], false);
  const order = { bytesMin: null, entriesMax: 9, emptiesMax: 9, spared: [], owner: "one" };
  const evicted = await writer.run("evict", order);

  assert.equal((await store.stock()).reservedBytes, 900);
  assert.deepEqual([evicted["narinfos"], evicted["entries"]], [[a.row.storePathHash], 1]);
  assert.equal((await store.pendingFiles()).length, 1);
});

test("a start that waited for the server says that it answers", async (server) => {
  await using proxy = new FaultProxy({ targetPort: server.port });
  proxy.isRefusing = true;
  const messages: string[] = [];
  const write = (line: string) => void messages.push(JSON.parse(line).msg);
  const url = server.createDatabase().replace(`:${server.port}/`, `:${proxy.port}/`);
  await using database = new Database({ url, log: createLogger("info", { write }) });

  const connecting = database.connected();
  await eventually("it waits", () => messages.length === 1);
  proxy.isRefusing = false;
  await (await connecting).end();

  assert.deepEqual(messages, ["database does not answer", "database answers again"]);
});

test("a server that hangs costs a request with several queries one wait", async (server) => {
  const url = `${server.createDatabase()}?query_timeout=2000`;
  await using database = new Database({ url, log });
  const query = { text: "SELECT 1" };
  await database.query(query);
  server.freeze();
  using _awake = { [Symbol.dispose]: () => server.wake() };

  await assert.rejects(database.query(query, 4_000), /Cannot use the database/);
  await assert.rejects(database.query(query, 4_000), /Cannot use the database/);

  // It does not wait for the server again.
});

test("a server that hangs ends a client's write, however long a write may take", async (server) => {
  const url = await server.createMigrated();
  await using database = new Database({ url, log });
  await using writer = new Writer(database);
  await writer.apply([a], false);
  server.freeze();
  using _awake = { [Symbol.dispose]: () => server.wake() };

  const outcome = writer.apply([b], false).then(() => "written", ({ kind }) => kind);

  // Its own limit is a minute.
  const limit = AbortSignal.timeout(40_000);
  const late = new Promise((resolve) => limit.onabort = () => resolve("late"));
  assert.equal(await Promise.race([outcome, late]), "away");
});

Deno.test("postgres: a client's write waits for no return of the database", async () => {
  const back = Promise.withResolvers<void>();
  const sent: unknown[] = [];
  const query: Database["query"] = async ({ values = [] }, waitMs) => {
    sent.push(values[1]);
    if (waitMs !== Infinity) throw new Failure("away", "Cannot use the database");
    await back.promise;
    return [{ outcome: { errors: [null] } }];
  };
  await using writer = new Writer({ query });
  const patient = writer.apply([a], true);
  await assert.rejects(writer.apply([b], false), /Cannot use the database/);
  await assert.rejects(writer.run("recount"), /Cannot use the database/);
  const behind = writer.apply([b], true);

  back.resolve();
  await Promise.all([patient, behind]);

  // The one that waits has its number, whenever it is written.
  assert.deepEqual(sent.slice(0, 4), [1, 1, 2, 2]);
});

test("the newest evictions are remembered, and a bounded number of them", async (server) => {
  const url = await server.createMigrated();
  await using store = await openPostgresStore(url);
  await using database = new Database({ url, log });
  await using writer = new Writer(database);
  const order = { bytesMin: null, entriesMax: 9, emptiesMax: 9, spared: [], owner: "we" };
  for (const [atMs, one] of [a, b].entries()) {
    await store.apply([one, ...keep(fileOf(one.nar.name))]);
    await writer.run("evict", { ...order, atMs, evictedPathsMax: 1 });
  }
  assert.deepEqual(await store.pathTimes(a.row.storePathHash), {});
  assert.deepEqual(await store.pathTimes(b.row.storePathHash), { evictedAtMs: 1 });
});

test("larders that start together make the tables once", async (server) => {
  const url = server.createDatabase();
  const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore(url)));
  await Promise.all(stores.map((store) => store.apply([a])));
  for (const store of stores) {
    assert.ok(await store.findNarinfo(a.row.storePathHash));
    await store[Symbol.asyncDispose]();
  }
});

test("of the signing keys that larders bring at once, one stays for all", async (server) => {
  const url = await server.createMigrated();
  await using one = await openPostgresStore(url);
  await using other = await openPostgresStore(url);
  assert.equal(await one.keys.signingKey(), undefined);

  const kept = await Promise.all([
    one.keys.adoptSigningKey("first"),
    other.keys.adoptSigningKey("second"),
  ]);

  assert.equal(kept[0], kept[1]);
  assert.equal(await one.keys.adoptSigningKey("third"), kept[0]);
  assert.equal(await other.keys.signingKey(), kept[0]);
});

test("the tables of a newer larder are refused", async (server) => {
  const url = server.createDatabase();
  const newer = [...readMigrations("postgres"), { version: 99, name: "newer", sql: "SELECT 1" }];
  const store = await PostgresMetadataStore.open({ url, log, migrations: newer });
  await store[Symbol.asyncDispose]();
  await assert.rejects(openPostgresStore(url), /Cannot use database: it has schema version/);
});

test("the log tells of a migration, and of no new database", async (server) => {
  const url = server.createDatabase();
  const lines: string[] = [];
  const log = createLogger("info", { write: (line) => lines.push(line) });
  const known = readMigrations("postgres");
  const newer = [...known, { version: 99, name: "newer", sql: "SELECT 1" }];
  for (const migrations of [known, newer, newer]) {
    await (await PostgresMetadataStore.open({ url, log, migrations }))[Symbol.asyncDispose]();
  }
  assert.equal(lines.length, 1, lines.join(""));
  const { msg, from, to, ms } = JSON.parse(lines[0] ?? "");
  assert.deepEqual({ msg, from, to }, {
    msg: "database migrated",
    from: known.at(-1)?.version,
    to: 99,
  });
  assert.equal(typeof ms, "number");
});

test("an upgrade over two schemas waits until all larders of the old one have stopped", async (server) => {
  const url = server.createDatabase();
  const known = readMigrations("postgres");
  const last = known.at(-1)?.version ?? 0;
  const after = (schemas: number) => [
    ...known,
    ...Array.from({ length: schemas }, (_, at) => (
      { version: last + 1 + at, name: `newer_${at}`, sql: "SELECT 1" }
    )),
  ];
  const open = (migrations = known) => PostgresMetadataStore.open({ url, log, migrations });
  {
    await using running = await open();
    await running.beat("a.1.x", { reservedBytes: 0, limitBytes: Infinity, url: "http://a:8501" });
    await assert.rejects(open(after(2)), (error) => {
      const { message } = error as Error;
      assert.match(
        message,
        new RegExp(`^Cannot migrate database: it has schema version ${last}, `),
      );
      assert.match(message, /older larders run on it: http:\/\/a:8501; stop them all \(systemctl /);
      return true;
    });
    await using _beside = await open(after(1));
    await running.leave("a.1.x");
  }
  await using _newest = await open(after(3));
});

test("the tables of another program are refused, and stay as they are", async (server) => {
  const url = server.createDatabase();
  await using database = new Database({ url, log });
  const rows = [
    ["users", /it has the table users of another program; give larder one of its own with --/],
    ["narinfos", /it has the table narinfos of another program; /],
    ["nar_files", /it has the table nar_files of another program; /],
    ["schema_migrations", /it is that of an ncps; give larder one of its own with --cache-dat/],
  ] as const;
  for (const [name, sentence] of rows) {
    await database.query({ text: `DROP TABLE IF EXISTS users; CREATE TABLE ${name} (id bigint)` });
    await assert.rejects(openPostgresStore(url), sentence);
    // A command that only reads says the same.
    await assert.rejects(PostgresMetadataStore.open({ url, log, migrates: false }), sentence);
  }
  const text = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1";
  const tables = (await database.query({ text })).map(({ tablename }) => tablename);
  assert.deepEqual(tables, ["nar_files", "narinfos", "schema_migrations"]);
});

test("a failed migration leaves the tables as they were", async (server) => {
  const url = server.createDatabase();
  const broken = [...readMigrations("postgres"), { version: 99, name: "broken", sql: "SELECT x" }];
  await assert.rejects(
    PostgresMetadataStore.open({ url, log, migrations: broken }),
    /Cannot apply migration broken: column "x" does not exist/,
  );
  await assert.rejects(
    PostgresMetadataStore.open({ url, log, migrates: false }),
    /it has no tables of larder/,
  );
});

test("writers of the same keys in opposite orders never wait for each other", async (server) => {
  const url = await server.createMigrated();
  await using one = await openPostgresStore(url);
  await using other = await openPostgresStore(url);
  const changes: readonly Change[] = Array.from({ length: 60 }, (_, at) => (
    put(hash(`path ${at}`), [hash(`path ${60 - at}`), hash(`path ${at + 1}`)])
  ));
  const touches: readonly Change[] = changes.flatMap((change) =>
    change.kind !== "put-narinfo" ? [] : [
      { kind: "touch-narinfo", storePathHash: change.row.storePathHash, atMs: 9_000 },
      { kind: "touch-nar", narName: change.nar.name, atMs: 9_000 },
    ]
  );
  const order = { bytesMin: 1, entriesMax: 9, spared: new Set<never>(), owner: "we" };

  for (let round = 0; round < 10; round++) {
    await Promise.all([
      one.apply(changes),
      other.apply(changes.toReversed()),
      one.apply(touches),
      other.apply(touches.toReversed()),
      one.evict(order),
      other.sweepRows({ ...order, unusedSinceMs: 0, rowsMax: 9 }),
    ]);
  }

  await using database = new Database({ url, log });
  const text = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
  const [row] = await database.query({ text });
  assert.equal(row?.["deadlocks"], 0);
  assert.equal(await one.areSumsRight(), true);
});

test("closures of pins take as many queries as they are deep, not wide", async (server) => {
  await using store = await openPostgresStore(await server.createMigrated());
  const wide = Array.from({ length: 300 }, (_, at) => at + 1);
  const nodes = [{ references: wide, nar: 0 }, ...wide.map((nar) => ({ references: [0], nar }))];
  const pins = wide.slice(0, 50).map((node): Change => (
    { kind: "put-pin", pin: { storePathHash: hashOfNode(node), pinnedAtMs: 1 } }
  ));
  await store.apply([...changesOf(nodes), ...pins]);
  using queries = countQueries();

  const closures = await new PinnedClosures({ metadata: store }).list();

  assert.deepEqual(new Set(closures.map(({ stored }) => stored)), new Set([nodes.length]));
  assert.deepEqual([closures.length, closures[0]?.name], [pins.length, "node-1"]);
  assert.ok(queries.count > 0 && queries.count <= 5, `${queries.count} queries`);
});

/** Counts the queries of this process, until disposed of. */
function countQueries(): Disposable & { readonly count: number } {
  const { prototype } = pg.Client;
  const { query } = prototype;
  const counted = { count: 0, [Symbol.dispose]: () => void (prototype.query = query) };
  prototype.query = function (...args: Parameters<typeof query>) {
    counted.count++;
    return query.apply(this, args);
  };
  return counted;
}

test("after a lost connection the feed reports a change of everything", async (server) => {
  const url = await server.createMigrated();
  await using store = await openPostgresStore(url);
  await using other = await openPostgresStore(url);
  const changes: Changed[] = [];
  await using _subscription = store.subscribe((changed) => void changes.push(changed));
  await using database = new Database({ url, log });
  const text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity " +
    "WHERE query LIKE '%pg_notify(%' AND datname = current_database() AND pid <> pg_backend_pid()";
  await database.query({ text });
  await other.apply([b]);

  await eventually("it says so", () => changes.includes("all"));
  await eventually("it listens again", async () => {
    changes.length = 0;
    await other.apply([a]);
    await store.reported().catch(() => undefined);
    return changes.some((changed) => changed !== "all" && changed.storePaths.length === 1);
  });
});

test("its end waits for queries that wait for a connection", async (server) => {
  const database = new Database({ url: await server.createMigrated(), log });
  await (await database.connected()).end();
  // More than there are connections. The sanitizer of the test finds timers that are left.
  const running = Array.from({ length: 50 }, () => database.query({ text: "SELECT 1 AS one" }));
  const all = Promise.all(running);
  await running[0];
  await database[Symbol.asyncDispose]();
  for (const rows of await all) assert.deepEqual(rows, [{ one: 1 }]);
});
