import type { WorkLeases } from "../../locks/work_leases.ts";
import type { NarFinder, NarRecord } from "../../metadata/metadata_store.ts";
import type { NarFailure } from "../sources/nar_attempts.ts";
import { type Download, ELSEWHERE } from "./download.ts";
import { discardDownload, runDownload, type RunDownloadDeps } from "./run_download.ts";

export interface RunLeasedDeps {
  readonly run: RunDownloadDeps;
  readonly leases: Pick<WorkLeases, "nar">;
}

/**
 * Downloads a NAR file unless another member does. Then it passes through, from that member or the
 * storage. Resolves as `runDownload`; never rejects.
 */
export async function runLeased(
  { run, leases }: RunLeasedDeps,
  download: Download,
  nar: NarRecord,
  requestId: string,
): Promise<NarFailure | undefined> {
  const { attempts: { candidates: { metadata }, logging: { log } } } = run;
  await using lease = await leases.nar(nar.name, () => isKeptSince(metadata, nar));
  if (lease.kind === "ours") {
    download.advance({ type: "lease" });
    return await runDownload(run, download, nar, requestId);
  }
  download.advance({ type: "error", reason: ELSEWHERE, mayPassThrough: true });
  discardDownload(download, log);
  return undefined;
}

/**
 * Reads the row anew. A file of the same name as before is the one that could not be served. A
 * database that cannot be read says nothing.
 */
async function isKeptSince(
  metadata: NarFinder,
  { name, kept: before }: NarRecord,
): Promise<boolean> {
  try {
    const kept = (await metadata.findNar(name, { fresh: true }))?.kept;
    return kept !== undefined && kept.at !== before?.at;
  } catch {
    return false;
  }
}
