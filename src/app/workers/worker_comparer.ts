import { Failure } from "../../base/failure.ts";
import type { ShardComparison } from "../../cache/reconcile/compare_shard.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromCompareWorker, ToCompareWorker } from "./messages.ts";

export interface WorkerComparerDeps {
  readonly databasePath: string;
  readonly narFolder: string;
}

/** Compares shards in a Worker, with its own database connection. */
export class WorkerComparer implements Disposable {
  readonly #worker: JobWorker<ToCompareWorker, FromCompareWorker>;

  constructor({ databasePath, narFolder }: WorkerComparerDeps) {
    this.#worker = new JobWorker<ToCompareWorker, FromCompareWorker>({
      url: new URL("./compare_worker.ts", import.meta.url),
      start: { type: "start", databasePath, narFolder } satisfies ToCompareWorker,
      died: (id, error) => ({ id, error }),
    });
  }

  /** The differences between files and rows of a shard. Throws if either is unreadable. */
  compare(shard: string, sizes: boolean): Promise<ShardComparison> {
    return new Promise((resolve, reject) => {
      const id = this.#worker.open((answer) => {
        this.#worker.forget(id);
        if ("comparison" in answer) resolve(answer.comparison);
        else reject(new Failure("broken", `Cannot compare shard ${shard}: ${answer.error}`));
      });
      this.#worker.send({ type: "compare", id, shard, sizes });
    });
  }

  [Symbol.dispose](): void {
    this.#worker[Symbol.dispose]();
  }
}
