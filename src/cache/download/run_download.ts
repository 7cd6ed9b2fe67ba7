import { ExponentialBackoff, halfJitterGenerator } from "cockatiel";
import { messageOf } from "../../base/failure.ts";
import { pause } from "../../base/pause.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import type { Download } from "./download.ts";
import { DownloadAttempts, type DownloadAttemptsDeps } from "./download_attempts.ts";
import { narCandidates, type NarCandidatesDeps } from "./nar_candidates.ts";
import { Transfer, type TransferDeps } from "./transfer.ts";

export interface RunDownloadDeps extends NarCandidatesDeps, TransferDeps, DownloadAttemptsDeps {
  readonly metadata: NarCandidatesDeps["metadata"];
  /** A download to which no upstream adds anything for so long is given up. */
  readonly resumeWithinMs: number;
}

/** Between two rounds through all upstreams: they may be restarting, or shed load. */
const ROUNDS = { initialDelay: 100, maxDelay: 2_000, generator: halfJitterGenerator };

/**
 * Brings one NAR file from the first upstream that has it to the store. Where an upstream breaks
 * off, the same one is asked for the rest as long as it adds to the file, then the others, then
 * all of them again. Before the first byte there is one round only: a client that waits for it
 * has other caches to ask. Never throws: a failure is the download's state.
 */
export async function runDownload(
  deps: RunDownloadDeps,
  download: Download,
  nar: NarRow,
  requestId: string,
): Promise<void> {
  using transfer = new Transfer(deps, download, nar);
  const attempts = new DownloadAttempts(deps, { download, nar, transfer, requestId });
  let reason: string | undefined;
  try {
    await rounds(deps, attempts, () => narCandidates(deps, nar, requestId));
  } catch (error) {
    reason = messageOf(error);
    deps.log.error("download failed", { nar: nar.name, error: reason, request_id: requestId });
  } finally {
    // Harmless where the download was kept: that state is final.
    download.advance({ type: "error", reason: reason ?? attempts.failure });
  }
}

async function rounds(
  { resumeWithinMs }: RunDownloadDeps,
  attempts: DownloadAttempts,
  candidates: () => ReturnType<typeof narCandidates>,
): Promise<void> {
  const backoff = new ExponentialBackoff(ROUNDS);
  for (let round = backoff.next();; round = round.next(undefined)) {
    const before = attempts.count;
    for await (const source of candidates()) {
      while (await attempts.next(source) === "grown") round = backoff.next();
      if (attempts.over) return;
    }
    const isHopeless = attempts.count === before;
    const idleMs = performance.now() - attempts.grownAt;
    if (isHopeless || !attempts.begun || idleMs + round.duration > resumeWithinMs) return;
    await pause(round.duration);
  }
}
