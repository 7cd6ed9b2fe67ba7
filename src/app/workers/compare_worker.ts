// The Worker that compares files with rows.
import { messageOf } from "../../base/failure.ts";
import { type ShardComparer, StoreComparer } from "../../cache/reconcile/compare_shard.ts";
import { readBackEnds } from "../back_ends/back_ends.ts";
import type { FromCompareWorker, ToCompareWorker } from "./messages.ts";
import { workerScope } from "../../base/worker_scope.ts";

const scope = workerScope<ToCompareWorker, FromCompareWorker>();

let comparer: ShardComparer;

scope.onmessage = ({ data }) => {
  if (data.type === "start") comparer = new StoreComparer(readBackEnds(data.places));
  else void run(data.id, data.shard, data.sizes);
};

async function run(id: number, shard: string, sizes: boolean): Promise<void> {
  try {
    scope.postMessage({ id, comparison: await comparer.compare(shard, sizes) });
  } catch (error) {
    scope.postMessage({ id, error: messageOf(error) });
  }
}
