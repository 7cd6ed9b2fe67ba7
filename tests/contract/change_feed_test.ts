import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { DataVersionFeed } from "../../src/metadata/sqlite/data_version_feed.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { eventually } from "../support/eventually.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { changeFeedClauses, type WatchedDatabase } from "./change_feed_contract.ts";
import { checkContract, type Harness } from "./contract.ts";

const harnesses: readonly Harness<WatchedDatabase>[] = [
  { name: "DataVersionFeed", open: openWatched },
];

for (const harness of harnesses) checkContract(harness, changeFeedClauses);

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
    revision: () => revision.get()?.["revision"],
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
