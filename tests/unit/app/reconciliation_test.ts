import assert from "node:assert/strict";
import { startReconciliation } from "../../../src/app/reconciliation.ts";
import type { Facts } from "../../../src/base/failure.ts";
import type { KeptFile } from "../../../src/metadata/metadata_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { eventually } from "../../support/eventually.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { StockedSpace } from "../../support/stocked_space.ts";

const ROWS = [
  { keptFiles: 20_000, isLarge: false },
  { keptFiles: 20_001, isLarge: true },
];

for (const { keptFiles, isLarge } of ROWS) {
  const where = isLarge ? "beside the requests" : "on this thread";
  Deno.test(`reconciliation: the first pass over ${keptFiles} files runs ${where}`, async () => {
    await using app = await StockedSpace.open(Infinity);
    const beside = new NotedComparer();
    const reconciled: unknown[] = [];
    const write = (line: string) => void reconciled.push(JSON.parse(line).msg);
    const metadata = new MemoryMetadataStore();
    const { stock } = metadata;
    metadata.stock = async () => ({ ...await stock.call(metadata), keptFiles });
    await using _running = await startReconciliation({
      stores: {
        metadata,
        nars: new MemoryNarStore(),
        claim: { confirm: () => Promise.resolve() },
      },
      beside,
      app: { space: app.space, kept: NOBODY },
      owner: "we",
      log: createLogger("info", { write }),
    });
    await eventually("the first pass is over", () => beside.isOver);
    assert.equal(beside.shards.size, isLarge ? 1_024 : 0);
    assert.deepEqual(reconciled, ["reconciled"]);
  });
}

Deno.test("reconciliation: a lost file is told where its return ends the problem", async () => {
  await using stocked = await StockedSpace.open(Infinity);
  const { metadata, space } = stocked;
  await stocked.store("a", 10);
  const [at] = stocked.files;
  const told: unknown[] = [];
  const kept = { noteLost: ({ at }: KeptFile, { found }: Facts) => void told.push([at, found]) };
  const lines: string[] = [];
  await using _running = await startReconciliation({
    stores: { metadata, nars: new MemoryNarStore(), claim: { confirm: () => Promise.resolve() } },
    beside: new NotedComparer(),
    app: { space, kept },
    owner: "we",
    log: createLogger("info", { write: (line) => void lines.push(JSON.parse(line).msg) }),
  });
  await eventually("the first pass is over", () => lines.includes("reconciled"));
  assert.deepEqual([told, lines], [[[at, "nothing"]], ["reconciled"]]);
});

Deno.test("reconciliation: nothing is compared in a store that may be another's", async () => {
  await using app = await StockedSpace.open(Infinity);
  const nars = new MemoryNarStore();
  nars.list = () => {
    throw new Error("it was listed");
  };
  const lines: Record<string, unknown>[] = [];
  await using _running = await startReconciliation({
    stores: {
      metadata: new MemoryMetadataStore(),
      nars,
      claim: { confirm: () => Promise.reject(new Error("another's")) },
    },
    beside: new NotedComparer(),
    app: { space: app.space, kept: NOBODY },
    owner: "we",
    log: createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) }),
  });
  await eventually("it is said", () => lines.length > 0);
  const said = lines.map(({ msg, error }) => [msg, error]);
  assert.deepEqual(said, [["not reconciled", "another's"]]);
});

const NOBODY = { noteLost: () => assert.fail("nothing is lost") };

/** Stands for a Worker. */
class NotedComparer implements Disposable {
  readonly shards = new Set<string>();
  isOver = false;

  async compare(shard: string) {
    this.shards.add(shard);
    return { files: 0, lost: [], orphans: [] };
  }

  [Symbol.dispose](): void {
    this.isOver = true;
  }
}
