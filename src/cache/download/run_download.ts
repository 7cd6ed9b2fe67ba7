import { messageOf } from "../../base/failure.ts";
import type { Space } from "../../space/space.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import type { Download } from "./download.ts";
import { DownloadReservation } from "./download_reservation.ts";
import {
  type DownloadFailure,
  NarAttempts,
  type NarAttemptsDeps,
} from "../sources/nar_attempts.ts";
import { narCandidates, type NarCandidatesDeps } from "../sources/nar_candidates.ts";
import { SourceFailures } from "../sources/source_failures.ts";
import { firstToAnswer } from "../sources/source_race.ts";
import { SourceRounds } from "../sources/source_rounds.ts";
import { Transfer, type TransferDeps } from "./transfer.ts";

export interface RunDownloadDeps extends NarCandidatesDeps, TransferDeps, NarAttemptsDeps {
  readonly metadata: NarCandidatesDeps["metadata"];
  readonly space: Pick<
    Space,
    "mayFit" | "reserve" | "grow" | "kept" | "diskFull" | "budget"
  >;
  readonly pool: NarCandidatesDeps["pool"] & NarAttemptsDeps["pool"];
  /** So long a download waits for a source that has fallen silent. */
  readonly idleTimeoutMs: number;
  /** So long a source is waited for alone; then the next one is asked, too. */
  readonly hedgeAfterMs: number;
}

/**
 * Brings one NAR file from the first upstream that has it to the store. Where an upstream breaks
 * off, the same one is asked for the rest as long as it adds to the file, then the others, then
 * all of them again, until `SourceFailures` gives them up. After a stall the others are first.
 * Never throws: a failure is the download's state. Resolves to why it came to nothing; a file that
 * cannot be kept, but passed on, did not.
 */
export async function runDownload(
  deps: RunDownloadDeps,
  download: Download,
  nar: NarRow,
  requestId: string,
): Promise<DownloadFailure | undefined> {
  using room = await DownloadReservation.open(deps.space, nar);
  if (room === undefined) {
    const detail = "there is no room for it";
    sayNoRoom(deps, nar, { detail, requestId });
    download.advance({ type: "error", reason: detail, unkept: true });
    discard(deps, download);
    return undefined;
  }
  let attempts: NarAttempts | undefined;
  let failure: DownloadFailure | undefined;
  try {
    using transfer = new Transfer(deps, { download, nar, room });
    const failures = new SourceFailures(deps.idleTimeoutMs, performance.now());
    const sources = new SourceRounds(() => narCandidates(deps, nar, requestId), failures);
    attempts = new NarAttempts(deps, { download, nar, transfer, sources, requestId });
    await run(attempts, sources, deps.hedgeAfterMs);
    if (download.state.state === "kept") await room.kept();
  } catch (error) {
    failure = { reason: "broken", detail: messageOf(error) };
    const facts = { nar: nar.name, error: failure.detail, request_id: requestId };
    deps.log.error("download failed", facts);
  } finally {
    // Harmless where the download was kept: that state is final.
    const unkept = attempts?.unkept;
    failure ??= attempts?.failure ?? { reason: "broken", detail: "it did not begin" };
    download.advance({ type: "error", reason: failure.detail, unkept: unkept !== undefined });
    // Before its space is given back.
    if (download.state.state === "failed") discard(deps, download);
    if (unkept === "room") sayNoRoom(deps, nar, { detail: failure.detail, requestId });
    if (unkept === "disk") deps.space.diskFull();
  }
  const isLost = download.state.state === "failed" && attempts?.unkept === undefined;
  if (isLost) attempts?.givenUp();
  return isLost ? failure : undefined;
}

function discard({ log }: Pick<RunDownloadDeps, "log">, { file }: Download): void {
  try {
    file.remove();
  } catch (error) {
    log.warn("download not removed", { path: file.path, error: messageOf(error) });
  }
}

/** What does not fit is said with the figures, and left to be passed on. */
function sayNoRoom(
  { keeping, space }: Pick<RunDownloadDeps, "keeping" | "space">,
  nar: NarRow,
  { detail, requestId }: { readonly detail: string; readonly requestId: string },
): void {
  const { limitBytes, usedBytes, reservedBytes, pinnedBytes } = space.budget;
  keeping.noRoom(nar.fileSize ?? nar.narSize, {
    nar: nar.name,
    detail,
    ...(nar.fileSize === undefined ? {} : { file_size: nar.fileSize }),
    limit_bytes: limitBytes,
    used_bytes: usedBytes,
    reserved_bytes: reservedBytes,
    pinned_bytes: pinnedBytes,
    request_id: requestId,
  });
}

async function run(
  attempts: NarAttempts,
  sources: SourceRounds,
  hedgeAfterMs: number,
): Promise<void> {
  const next = async () => attempts.over ? undefined : await sources.next();
  const ask = attempts.ask.bind(attempts);
  const putBack = sources.putBack.bind(sources);
  do {
    for (;;) {
      const attempt = await firstToAnswer({ next, ask, putBack, hedgeAfterMs });
      if (attempt === undefined) break;
      await attempt.over;
    }
  } while (!attempts.over && await sources.another());
}
