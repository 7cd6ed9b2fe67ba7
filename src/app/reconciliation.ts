import { readShard } from "../cache/reconcile/compare_shard.ts";
import { Reconciler } from "../cache/reconcile/reconciler.ts";
import { Repairer } from "../cache/reconcile/repairer.ts";
import type { MetadataStore } from "../metadata/metadata_store.ts";
import { shards } from "../storage/local/local_nar_store.ts";
import type { NarStore } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { App } from "./build_app.ts";
import { WorkerComparer, type WorkerComparerDeps } from "./workers/worker_comparer.ts";

/** With more files than this the first pass runs in a Worker: a shard takes milliseconds. */
const HERE_MAX = 20_000;

export interface ReconciliationDeps extends WorkerComparerDeps {
  readonly metadata: MetadataStore;
  readonly nars: NarStore;
  readonly app: Pick<App, "space">;
  readonly owner: string;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** Compares files with rows in the background, until disposed of. */
export async function startReconciliation(deps: ReconciliationDeps): Promise<AsyncDisposable> {
  const { app: { space }, metadata } = deps;
  const { keptFiles } = await metadata.stock();
  const comparer = keptFiles > HERE_MAX ? new WorkerComparer(deps) : undefined;
  const reconciler = new Reconciler({
    ...deps,
    shards: shards(),
    // Later passes are slow: a shard in ten seconds.
    compare: (shard, sizes) =>
      sizes || comparer === undefined
        ? readShard(deps, shard, sizes)
        : comparer.compare(shard, sizes),
    firstPassOver: () => comparer?.[Symbol.dispose](),
    repairer: new Repairer({ ...deps, sweeper: space.sweeper }),
    changed: () => space.refresh(),
  });
  reconciler.start();
  return {
    async [Symbol.asyncDispose]() {
      // In this order, so that callers of the Worker learn of its end.
      comparer?.[Symbol.dispose]();
      await reconciler[Symbol.asyncDispose]();
    },
  };
}
