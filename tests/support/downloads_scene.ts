import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Demotions } from "../../src/cache/sources/nar_candidates.ts";
import { Downloads } from "../../src/cache/download/downloads.ts";
import type { NarFetcher } from "../../src/cache/fetch/nar_fetcher.ts";
import type { NarMeasure, VerifyOrder } from "../../src/cache/verify/nar_verifier.ts";
import type { NarRow } from "../../src/metadata/metadata_store.ts";
import { type FileHash, type NarHash, sha256FromDigest } from "../../src/nix/hash.ts";
import { NO_OTHER_MEMBERS, type WorkLeases } from "../../src/locks/work_leases.ts";
import { narName } from "../../src/nix/nar_name.ts";
import { ActiveReads } from "../../src/space/active_reads.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { NO_TRACER } from "../../src/telemetry/tracer.ts";
import { hash, put } from "./metadata_rows.ts";
import type { StockedSpace } from "./stocked_space.ts";
import { measuredFile } from "./measured_file.ts";
import { MemoryNarStore } from "./memory_nar_store.ts";
import { quietPool } from "./quiet_pool.ts";

export const BYTES = new Uint8Array(1_000);
export const DIGEST = createHash("sha256").update(BYTES).digest();
export const NAR: NarRow = {
  name: narName(sha256FromDigest(DIGEST), "none"),
  compression: "none",
  narHash: sha256FromDigest(DIGEST) as NarHash,
  narSize: BYTES.length,
};
export const UPSTREAMS = ["https://one.example", "https://two.example"];

export interface DownloadsScene {
  readonly stocked: StockedSpace;
  readonly folder: { readonly path: string };
  readonly fetcher: NarFetcher;
  readonly upstreams?: readonly string[];
  readonly logged?: (line: string) => void;
  /** The check result of a compressed file. */
  readonly measure?: Promise<NarMeasure>;
  /** Called with each file that a verify thread gets. */
  readonly verifying?: (path: string, compression: string) => void;
  readonly verifyThreads?: number;
  readonly nowMs?: () => number;
  /** Called when a file is about to be published. */
  readonly publishing?: () => void;
  readonly leases?: Pick<WorkLeases, "nar">;
}

export function downloadsOver(
  { stocked, folder, fetcher, upstreams = [], ...told }: DownloadsScene,
) {
  const { metadata, space } = stocked;
  const pool = quietPool(upstreams);
  const demotions = new Demotions();
  const metrics = new Metrics({ domains: { upstreams: [...upstreams] } });
  const log = createLogger("error", { write: (line) => told.logged?.(line) });
  const verifier = {
    start: ({ path, compression }: VerifyOrder) => {
      told.verifying?.(path, compression);
      const file = compression === "none" ? Promise.resolve(measuredFile(path)) : undefined;
      return {
        measure: file ?? told.measure ?? assert.fail("there is nothing to verify"),
        grown() {},
        [Symbol.dispose]() {},
      };
    },
    passThrough: () => assert.fail("there is nothing to pass through"),
  };
  const nars = toldOf(new MemoryNarStore(), () => told.publishing?.());
  const keeping = { metadata, nars, nowMs: told.nowMs ?? (() => 0), owner: "test" };
  return new Downloads({
    attempts: {
      candidates: { metadata, pool, demotions },
      logging: { pool, demotions, metrics, log },
      ...{ idleTimeoutMs: 0, hedgeAfterMs: 0, prefetchWaitMs: 60_000 },
    },
    transfer: { keeping, fetcher, verifier, tracer: NO_TRACER },
    reads: new ActiveReads(),
    space,
    pool,
    leases: told.leases ?? NO_OTHER_MEMBERS,
    files: { spoolFolder: folder.path, verifyThreads: told.verifyThreads ?? 1 },
  });
}

function toldOf(
  nars: MemoryNarStore,
  publishing: () => void,
): Pick<MemoryNarStore, "put" | "remove"> {
  return {
    put(at, path) {
      publishing();
      return nars.put(at, path);
    },
    remove: (at) => nars.remove(at),
  };
}

const FILE_HASH = sha256FromDigest(DIGEST) as FileHash;
/** A NAR whose file hash tells the right bytes before its NAR hash does. */
export const PACKED: NarRow = {
  ...NAR,
  name: narName(FILE_HASH, "xz"),
  compression: "xz",
  fileHash: FILE_HASH,
  fileSize: BYTES.length,
};
export const MEASURED = { kind: "measured", digest: DIGEST, narSize: BYTES.length } as const;

export async function know(stocked: StockedSpace, nar: NarRow): Promise<void> {
  const sources = [{ upstream: UPSTREAMS[0] ?? "", location: "nar/x" }];
  const { row } = put(hash("a"), []);
  await stocked.metadata.apply([
    { ...put(hash("a"), []), row: { ...row, narName: nar.name }, nar, sources },
  ]);
}

/** Brings the whole file at once. */
export function ending(): NarFetcher {
  return {
    begin: (order, listener) => ({
      from: async (_source, taken) => {
        taken?.();
        Deno.writeFileSync(order.path, BYTES);
        listener.progress({ type: "opened", fileSize: BYTES.length });
        listener.progress({ type: "bytes", received: BYTES.length });
        return { type: "end", fileSize: BYTES.length, digest: DIGEST, maybeShort: false };
      },
      [Symbol.dispose]() {},
    }),
  };
}
