import assert from "node:assert/strict";
import { Demotions } from "../../../src/cache/download/demotions.ts";
import { Downloads } from "../../../src/cache/download/downloads.ts";
import type { NarFetcher } from "../../../src/cache/download/nar_fetcher.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { NO_TRACER } from "../../../src/telemetry/tracer.ts";
import { narOf } from "../../support/metadata_rows.ts";
import { StockedSpace } from "../../support/stocked_space.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("downloads: one whose Worker cannot be reached fails, and is over", async () => {
  using folder = tempFolder();
  await using stocked = await StockedSpace.open(Infinity);
  let begun = 0;
  const fetcher: NarFetcher = {
    begin() {
      begun++;
      throw new Error("no thread can be started");
    },
  };
  const downloads = new Downloads({
    metadata: stocked.metadata,
    nars: new MemoryNarStore(),
    known: { learn: () => undefined },
    space: stocked.space,
    pool: {
      narinfo: () => Promise.resolve({ kind: "absent" }),
      order: () => [],
      isSilent: () => false,
      probeIfDown: () => Promise.resolve(),
      note: () => undefined,
    },
    demotions: new Demotions(),
    fetcher,
    verifier: {
      start: () => assert.fail("there is nothing to verify"),
      pass: () => assert.fail("there is nothing to pass on"),
    },
    tempFolder: folder.path,
    tracer: NO_TRACER,
    metrics: new Metrics({ domains: { upstreams: [] } }),
    log: createLogger("error", { write: () => undefined }),
    nowMs: () => 0,
    owner: "test",
    removalsOver: () => Promise.resolve(),
    idleTimeoutMs: 0,
    hedgeAfterMs: 0,
  });
  for (const count of [1, 2]) {
    const { download, joined } = downloads.join(narOf("a"), "request");
    assert.equal(joined, false);
    await assert.rejects(download.readable(0), /no thread can be started/);
    await downloads.over();
    assert.deepEqual([begun, downloads.count], [count, 0]);
  }
  assert.deepEqual([...Deno.readDirSync(folder.path)], []);
});
