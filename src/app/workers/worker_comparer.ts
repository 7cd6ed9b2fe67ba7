import { Failure } from "../../base/failure.ts";
import type { ShardComparer, ShardComparison } from "../../cache/reconcile/compare_shard.ts";
import { WORKER_THREADS } from "../../runtime/threads.ts";
import type { StorePlaces } from "../back_ends/back_ends.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromCompareWorker, ToCompareWorker } from "./messages.ts";

/** Compares shards in a Worker, which opens the stores for itself. */
export class WorkerComparer implements ShardComparer, Disposable {
  readonly #worker: JobWorker<ToCompareWorker, FromCompareWorker>;

  constructor(places: StorePlaces) {
    this.#worker = new JobWorker<ToCompareWorker, FromCompareWorker>({
      threads: WORKER_THREADS,
      url: new URL("./compare_worker.ts", import.meta.url),
      start: { type: "start", places } satisfies ToCompareWorker,
      died: (id, error) => ({ id, error }),
    });
  }

  async compare(shard: string, sizes: boolean): Promise<ShardComparison> {
    const answer = await this.#worker.ask((id) => ({ type: "compare", id, shard, sizes }));
    if ("comparison" in answer) return answer.comparison;
    throw new Failure("broken", `Cannot compare shard ${shard}: ${answer.error}`);
  }

  [Symbol.dispose](): void {
    this.#worker[Symbol.dispose]();
  }
}
