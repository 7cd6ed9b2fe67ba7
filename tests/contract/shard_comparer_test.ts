import { openBackEnds, type StorePlaces } from "../../src/app/back_ends/back_ends.ts";
import { WorkerComparer } from "../../src/app/workers/worker_comparer.ts";
import {
  type ComparedStores,
  type ShardComparer,
  StoreComparer,
} from "../../src/cache/reconcile/compare_shard.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract } from "./contract.ts";
import { type ComparerScene, shardComparerClauses } from "./shard_comparer_contract.ts";

type Opener = (
  opened: AsyncDisposableStack,
  places: StorePlaces,
  stores: ComparedStores,
) => ShardComparer;

const openers: Readonly<Record<string, Opener>> = {
  StoreComparer: (_opened, _places, stores) => new StoreComparer(stores),
  WorkerComparer: (opened, places) => opened.use(new WorkerComparer(places)),
};

for (const [name, open] of Object.entries(openers)) {
  checkContract({ name, open: () => openScene(open) }, shardComparerClauses);
}

async function openScene(open: Opener): Promise<ComparerScene & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const { path } = opening.use(tempFolder());
  const places = {
    database: { kind: "sqlite", path: `${path}/db.sqlite` },
    nars: { kind: "local", folder: `${path}/nar` },
  } as const;
  const { metadata, nars } = opening.use(await openBackEnds(places));
  const comparer = open(opening, places, { metadata, nars });
  const opened = opening.move();
  return {
    ...{ comparer, metadata, nars },
    // A link to itself: root, too, cannot read it.
    spoil: (shard) => Deno.symlinkSync(shard, `${path}/nar/${shard}`),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
