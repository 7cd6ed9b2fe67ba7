import type { Downloads } from "../cache/download/downloads.ts";
import type { InFlight } from "../cache/fetch/transfer_progress.ts";
import type { NarForms } from "../cache/forms/nar_forms.ts";
import type { KeptNars } from "../cache/kept/kept_nars.ts";
import { Recompression } from "../cache/recompress/recompression.ts";
import type { NarVerifier } from "../cache/verify/nar_verifier.ts";
import { NO_OTHER_MEMBERS } from "../locks/work_leases.ts";
import type { ActiveReads } from "../space/active_reads.ts";
import type { Space } from "../space/space.ts";
import type { AppParts } from "./app_parts.ts";
import { WorkerEncoder } from "./workers/worker_encoder.ts";

/** Objects that recompression shares with the rest of the cache. */
export interface RecompressionNeighbours {
  readonly kept: KeptNars;
  readonly verifier: NarVerifier;
  readonly space: Space;
  readonly reads: ActiveReads;
  readonly downloads: Downloads;
  readonly forms: Pick<NarForms, "isBusy">;
  /** The NARs that come in now. */
  readonly inFlight: readonly InFlight[];
}

/** Wires the background job that keeps files in zstd; `undefined` where the settings want none. */
export function buildRecompression(
  parts: AppParts,
  { inFlight, forms, ...neighbours }: RecompressionNeighbours,
  resources: AsyncDisposableStack,
): Recompression | undefined {
  const { stores, fetching: { recompress }, telemetry: { metrics, log }, nowMs } = parts;
  if (recompress === undefined) return undefined;
  const { metadata, nars, spool, leases, space: { owner, graceMs = 0 } } = stores;
  const { downloads } = neighbours;
  const encoder = recompress.encoder ?? resources.use(new WorkerEncoder(parts.runtime.threads));
  const recompression = resources.use(
    new Recompression({
      ...neighbours,
      publishing: { metadata, nars, nowMs, owner },
      encoder,
      leases: leases ?? NO_OTHER_MEMBERS,
      // A store without open files, and readers that this member does not see.
      sparesUsed: graceMs > 0 || leases !== undefined,
      isIdle: () =>
        downloads.backlog().files === 0 && !forms.isBusy &&
        inFlight.every(({ count }) => count === 0),
      folder: spool.path,
      level: recompress.level,
      ...{ metrics, log },
    }),
  );
  metrics.gauge("recompress_backlog_files", {}, () => recompression.counts.backlogFiles);
  metrics.gauge("recompressed_kept_bytes", {}, () => recompression.counts.zstdBytes);
  return recompression;
}
