import assert from "node:assert/strict";
import {
  createSigner,
  NarinfoServer,
  NegativeCache,
} from "../../../../src/cache/narinfo/serve_narinfo.ts";
import { Demotions } from "../../../../src/cache/sources/nar_candidates.ts";
import { Touches } from "../../../../src/cache/touches.ts";
import type { Change } from "../../../../src/metadata/metadata_store.ts";
import type { NarName } from "../../../../src/nix/nar_name.ts";
import type { StorePathHash } from "../../../../src/nix/store_path.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { narOf } from "../../../support/metadata_rows.ts";

const HASH = "0".repeat(32) as StorePathHash;
const NAR = "nar" as NarName;
const ROW = { storePathHash: HASH, body: "stored", narName: NAR, trusted: true };
const UPSTREAM = "https://one.example";

Deno.test("narinfo: a stored one that no upstream replaces is served and used", async () => {
  const changes: Change[] = [];
  const log = createLogger("error", { write() {} });
  const apply = (more: readonly Change[]) => Promise.resolve(void changes.push(...more));
  await using touches = new Touches({ metadata: { apply }, nowMs: () => 7, log });
  const demotions = new Demotions();
  demotions.add(NAR, UPSTREAM, "missing");
  const server = new NarinfoServer({
    rows: {
      metadata: {
        findNarinfo: () => Promise.resolve(ROW),
        findNar: () => Promise.resolve({ ...narOf("x"), name: NAR, seenAtMs: 7 }),
        sourcesOf: () => Promise.resolve([{ upstream: UPSTREAM, location: "nar" }]),
      },
      signer: createSigner(undefined),
    },
    narinfoFetches: {
      fetch: () =>
        Promise.resolve({
          narinfo: { kind: "unknown" },
          isJoined: false,
          hasJoinedPrefetch: false,
        }),
    },
    kept: { isHere: () => false, lostAtMs: () => undefined },
    isUpstream: (url) => url === UPSTREAM,
    nowMs: () => 7,
    negative: new NegativeCache(1),
    demotions,
    touches,
    prefetch: { hit: () => false, missed: () => undefined },
    loops: { isPassedOn: false },
    log,
  });

  const { cacheResult, text } = await server.serve(HASH, { requestId: "test", isHead: false });
  await touches.flush();

  assert.deepEqual([cacheResult, text], ["HIT", "stored"]);
  assert.deepEqual(changes, [{ kind: "touch-narinfo", storePathHash: HASH, atMs: 7 }]);
});
