import assert from "node:assert/strict";
import { createSigner, NegativeCache } from "../../../../src/cache/narinfo/serve_narinfo.ts";
import { NarinfoFetches } from "../../../../src/cache/narinfo/narinfo_fetches.ts";
import { Demotions } from "../../../../src/cache/sources/nar_candidates.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { MemoryMetadataStore } from "../../../support/memory_metadata_store.ts";
import { hash } from "../../../support/metadata_rows.ts";

Deno.test("narinfo: another member has its lease once the database has the row", async () => {
  const landing = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  let isOver = false;
  const lease = {
    kind: "ours" as const,
    [Symbol.asyncDispose]() {
      isOver = true;
      ended.resolve();
      return Promise.resolve();
    },
  };
  const absent = () => Promise.resolve({ kind: "absent" as const });
  const metadata = Object.assign(new MemoryMetadataStore(), {
    narinfoLanded: () => landing.promise,
  });
  const fetches = new NarinfoFetches({
    metadata,
    memory: { negative: new NegativeCache(0), demotions: new Demotions() },
    pool: { narinfo: absent, prefetchNarinfo: absent },
    leases: { narinfo: () => Promise.resolve(lease) },
    signer: createSigner(undefined),
    nowMs: () => 0,
    loops: { isPassedOn: false },
    signedPathsMax: () => Infinity,
    log: createLogger("error", { write() {} }),
  });

  const { narinfo } = await fetches.fetch({
    storePathHash: hash("a"),
    row: undefined,
    requestId: "r",
  });

  assert.deepEqual([narinfo.kind, isOver], ["absent", false]);
  landing.resolve();
  await ended.promise;
});
