// The Worker that compares files with rows.
import { messageOf } from "../../base/failure.ts";
import { readShard, type ShardComparison } from "../../cache/reconcile/compare_shard.ts";
import { openForReading } from "../../metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../metadata/sqlite/sqlite_metadata_store.ts";
import { LocalNarStore } from "../../storage/local/local_nar_store.ts";
import type { FromCompareWorker, ToCompareWorker } from "./messages.ts";
import { workerScope } from "../../base/worker_scope.ts";

const scope = workerScope<ToCompareWorker, FromCompareWorker>();

let compare: (shard: string, sizes: boolean) => Promise<ShardComparison>;

scope.onmessage = ({ data }) => {
  if (data.type === "start") {
    const metadata = new SqliteMetadataStore(openForReading(data.databasePath));
    const nars = new LocalNarStore(data.narFolder);
    compare = (shard, sizes) => readShard({ metadata, nars }, shard, sizes);
  } else void run(data.id, data.shard, data.sizes);
};

async function run(id: number, shard: string, sizes: boolean): Promise<void> {
  try {
    scope.postMessage({ id, comparison: await compare(shard, sizes) });
  } catch (error) {
    scope.postMessage({ id, error: messageOf(error) });
  }
}
