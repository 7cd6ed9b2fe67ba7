import { type ShardComparer, StoreComparer } from "../cache/reconcile/compare_shard.ts";
import { Reconciler } from "../cache/reconcile/reconciler.ts";
import type { StorageClaim } from "../cache/reconcile/storage_claim.ts";
import { Repairer } from "../cache/reconcile/repairer.ts";
import type { WorkLeases } from "../locks/work_leases.ts";
import type { MetadataStore } from "../metadata/metadata_store.ts";
import { clock } from "../runtime/current.ts";
import type { NarStore } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { App } from "./build_app.ts";

/** Maximum files for a first pass in this thread. Beyond it a shard takes milliseconds. */
const FILES_ON_THIS_THREAD_MAX = 20_000;

/** Maximum files for large shards in a first pass: some 150 in each. */
const FILES_FOR_LARGE_SHARDS_MAX = 5_000;

export interface ReconciledStores {
  readonly metadata: MetadataStore;
  readonly nars: NarStore;
  /** Nothing is compared before the NAR files are known to be this database's. */
  readonly claim: Pick<StorageClaim, "confirm">;
}

export interface ReconciliationDeps {
  readonly stores: ReconciledStores;
  /** Compares the same stores in a Worker, which starts with the first shard. */
  readonly beside: ShardComparer & Disposable;
  readonly app: Pick<App, "space" | "kept">;
  readonly owner: string;
  readonly leases?: Pick<WorkLeases, "repair"> | undefined;
  readonly log: Logger;
}

/** Compares files with rows in the background, until disposed of. */
export async function startReconciliation(deps: ReconciliationDeps): Promise<AsyncDisposable> {
  const { app: { space, kept }, stores, beside, owner, leases, log } = deps;
  const { metadata, claim } = stores;
  const { keptFiles } = await metadata.stock();
  const here = new StoreComparer(stores);
  const first = keptFiles > FILES_ON_THIS_THREAD_MAX ? beside : here;
  const reconciler = new Reconciler({
    ...{ leases, log },
    nowMs: () => clock.wallMs(),
    // Later passes are slow: a shard in ten seconds.
    comparer: {
      isSmall: keptFiles <= FILES_FOR_LARGE_SHARDS_MAX,
      compare: async (shard, sizes) => {
        await claim.confirm();
        return await (sizes ? here : first).compare(shard, sizes);
      },
    },
    firstPassOver: () => beside[Symbol.dispose](),
    repairer: new Repairer({ stores, sweeper: space.sweeper, owner, log, kept }),
    changed: () => space.refresh(),
  });
  reconciler.start();
  return {
    async [Symbol.asyncDispose]() {
      // In this order, so that callers of the Worker learn of its end.
      beside[Symbol.dispose]();
      await reconciler[Symbol.asyncDispose]();
    },
  };
}
