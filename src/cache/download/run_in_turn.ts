import type { Turns } from "../../locks/turns.ts";
import type { NarFinder, NarRow } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { NarFailure } from "../sources/nar_attempts.ts";
import type { Download } from "./download.ts";
import { ELSEWHERE } from "./download_state.ts";
import { discard, runDownload, type RunDownloadDeps } from "./run_download.ts";

export interface RunInTurnDeps extends RunDownloadDeps {
  readonly turns: Pick<Turns, "nar">;
}

/**
 * Downloads a NAR file unless another member does. Then it passes through, from that member or the
 * storage. Resolves as `runDownload`; never rejects.
 */
export async function runInTurn(
  deps: RunInTurnDeps,
  download: Download,
  nar: NarRow,
  requestId: string,
): Promise<NarFailure | undefined> {
  const { attempts: { candidates: { metadata }, logging: { log } } } = deps;
  await using turn = await deps.turns.nar(nar.name, () => isKept(metadata, nar.name));
  if (turn.kind === "ours") return await runDownload(deps, download, nar, requestId);
  download.advance({ type: "error", reason: ELSEWHERE, mayPassThrough: true });
  discard(download, log);
  return undefined;
}

/** Reads the row anew. A database that cannot be read says nothing. */
async function isKept(metadata: NarFinder, nar: NarName): Promise<boolean> {
  try {
    return (await metadata.findNar(nar, { fresh: true }))?.kept !== undefined;
  } catch {
    return false;
  }
}
