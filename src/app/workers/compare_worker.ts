// The Worker that compares files with rows.
import { messageOf } from "../../base/failure.ts";
import { type ShardComparer, StoreComparer } from "../../cache/reconcile/compare_shard.ts";
import { readBackEnds, type StorePlaces } from "../back_ends/back_ends.ts";
import type { FromCompareWorker, ToCompareWorker } from "./messages.ts";
import { workerScope } from "../../base/worker_scope.ts";

const scope = workerScope<ToCompareWorker, FromCompareWorker>();

let places: StorePlaces;
let comparer: Promise<ShardComparer> | undefined;

scope.onmessage = ({ data }) => {
  if (data.type === "start") places = data.places;
  else void run(data.id, data.shard, data.sizes);
};

async function run(id: number, shard: string, sizes: boolean): Promise<void> {
  try {
    comparer ??= open();
    scope.postMessage({ id, comparison: await (await comparer).compare(shard, sizes) });
  } catch (error) {
    scope.postMessage({ id, error: messageOf(error) });
  }
}

async function open(): Promise<ShardComparer> {
  return new StoreComparer(await readBackEnds(places));
}
