import assert from "node:assert/strict";
// @ts-types="../../src/metadata/postgres/pg.d.ts"
import pg from "pg";
import type { Changed } from "../../src/metadata/change_feed.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import {
  DataVersionFeed,
  SqliteMetadataStore,
} from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { eventually } from "../support/eventually.ts";
import { openPostgresStore, PostgresServer } from "../support/postgres.ts";
import { hash, put } from "../support/metadata_rows.ts";
import { testUnless } from "../support/program.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { changeFeedClauses, type WatchedDatabase } from "./change_feed_contract.ts";
import { checkContract, type Harness } from "./contract.ts";

const postgres = PostgresServer.start();

const harnesses: readonly Harness<WatchedDatabase>[] = [
  { name: "DataVersionFeed", open: openWatched },
  { name: "NoticeFeed", unavailable: postgresMissing, open: openNoticed },
];

for (const harness of harnesses) checkContract(harness, changeFeedClauses);

testUnless(
  postgresMissing,
  "NoticeFeed: notices of strangers are no failure, and hide no notice of a member",
  async () => {
    const url = await postgres?.createMigrated() ?? "";
    await using own = await openPostgresStore(url);
    await using other = await openPostgresStore(url);
    const reports: Changed[] = [];
    await using _subscribed = own.subscribe((changed) => void reports.push(changed));
    const stranger = new pg.Client({ connectionString: url });
    await stranger.connect();
    const payloads = [
      ...["", "{", "null", "7", '"x"', "[]", '{"storePaths":5}', '{"nars":[{}]}'],
      ...['{"check":{}}', `{"storePaths":[${"1,".repeat(3_000)}1]}`],
    ];
    for (const payload of payloads) {
      await stranger.query({ text: "SELECT pg_notify('larder', $1)", values: [payload] });
    }
    await stranger.end();
    await other.apply([put(hash("a"), [])]);
    await own.reported();
    // What larder cannot read may be of a newer one: each row may have changed.
    assert.equal(reports.filter((changed) => changed === "all").length, payloads.length);
    assert.deepEqual(reports.at(-1), {
      storePaths: [hash("a")],
      nars: [put(hash("a"), []).nar.name],
    });
  },
);

async function openWatched(): Promise<WatchedDatabase & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const { path } = opening.use(tempFolder());
  const open = () => openDatabase(`${path}/db.sqlite`);
  const database = await open();
  const dataVersion = database.prepare("PRAGMA data_version");
  const revision = database.prepare("SELECT revision FROM stock");
  let polls = 0;
  const feed = new DataVersionFeed({
    dataVersion: () => (polls++, dataVersion.get()?.["data_version"]),
    revision: () => Number(revision.get()?.["revision"]),
    pollEveryMs: 2,
  });
  const own = opening.use(new SqliteMetadataStore(database, Date.now, feed));
  const other = opening.use(new SqliteMetadataStore(await open()));
  const reported = async () => {
    const before = polls;
    // The first of these may have begun before the change.
    await eventually("the feed polls", () => polls > before + 1);
  };
  const opened = opening.move();
  const dispose = () => opened.disposeAsync();
  return { feed, own, other, reported, [Symbol.asyncDispose]: dispose };
}

async function openNoticed(): Promise<WatchedDatabase & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const url = await postgres?.createMigrated() ?? "";
  const own = opening.use(await openPostgresStore(url));
  const other = opening.use(await openPostgresStore(url));
  // Notices travel on a connection of their own.
  const noticed = <Method extends keyof WatchedDatabase["other"]>(method: Method) =>
    (async (...args: readonly unknown[]) => {
      const result = await Reflect.apply(other[method], other, args);
      await own.reported();
      return result;
    }) as unknown as WatchedDatabase["other"][Method];
  const opened = opening.move();
  const dispose = () => opened.disposeAsync();
  const reported = () => own.reported();
  const watched = {
    apply: noticed("apply"),
    beat: noticed("beat"),
    reserve: noticed("reserve"),
    recordHistory: noticed("recordHistory"),
    protect: noticed("protect"),
    evict: noticed("evict"),
  };
  return { feed: own, own, other: watched, reported, [Symbol.asyncDispose]: dispose };
}
