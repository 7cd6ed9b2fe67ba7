import { type Facts, Failure, messageOf } from "../../base/failure.ts";
import type { ChangeWriter, NarRow } from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import type { NarWriter } from "../../storage/nar_store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Download } from "./download.ts";
import { narCandidates, type NarCandidatesDeps } from "./nar_candidates.ts";
import { type FetchedFile, fetchFrom, type FetchFromDeps } from "./fetch_from.ts";
import { Mismatch } from "./mismatch.ts";
import type { NarMeasure } from "../verify/nar_verifier.ts";

export interface RunDownloadDeps extends NarCandidatesDeps, FetchFromDeps {
  readonly metadata: NarCandidatesDeps["metadata"] & ChangeWriter;
  readonly nars: NarWriter;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly nowMs: () => number;
}

/**
 * Brings one NAR file from the first upstream that has it to the store: fetch, check the file
 * hash, let the readers have it, check the NAR hash, publish, write the row. Never throws: a
 * failure is the download's state.
 */
export async function runDownload(
  deps: RunDownloadDeps,
  download: Download,
  nar: NarRow,
  requestId: string,
): Promise<void> {
  const { log } = deps;
  const startedAtMs = deps.nowMs();
  let failure = "no upstream has it";
  try {
    for await (const source of narCandidates(deps, nar, requestId)) {
      const facts = { nar: nar.name, upstream: source.upstream, request_id: requestId };
      log.info("downloading nar from upstream", facts);
      try {
        using fetched = await fetchFrom(deps, download, nar, source);
        if (fetched === undefined) {
          deps.demotions.add(nar.name, source.upstream, "absent");
          log.warn("upstream lost nar", facts);
          continue;
        }
        await keep(deps, download, nar, fetched);
        const duration_ms = deps.nowMs() - startedAtMs;
        const file_size = fetched.fileSize;
        log.info("nar cached successfully", { ...facts, file_size, duration_ms });
        return;
      } catch (error) {
        failure = messageOf(error);
        blame(deps, nar, error, facts);
        // Once readers have bytes, another file's bytes cannot follow.
        if (download.state.state !== "opening" || isCancelled(error)) break;
      }
    }
  } catch (error) {
    failure = messageOf(error);
    log.error("download failed", { nar: nar.name, error: failure, request_id: requestId });
  } finally {
    // Harmless where the download was kept: that state is final.
    download.advance({ type: "error", reason: failure });
  }
}

async function keep(
  { nars, metadata, nowMs }: RunDownloadDeps,
  download: Download,
  nar: NarRow,
  fetched: FetchedFile,
): Promise<void> {
  const { fileSize, digest } = fetched;
  const fileHash = sha256FromDigest(digest);
  if (nar.fileSize !== undefined && nar.fileSize !== fileSize) {
    throw new Mismatch("file_size", `the file has ${fileSize} bytes, not ${nar.fileSize}`);
  }
  if (nar.fileHash !== undefined && nar.fileHash !== fileHash) {
    throw new Mismatch("file_hash", `the file's hash is ${fileHash}, not ${nar.fileHash}`);
  }
  const released = nar.fileHash !== undefined || nar.compression === "none";
  if (nar.compression === "none") check(nar, { kind: "measured", digest, narSize: fileSize });
  download.advance({ type: "end", fileSize, released });
  if (download.state.state === "failed") throw new Failure("corrupt", download.state.reason);
  if (nar.compression !== "none") check(nar, await fetched.measure());
  download.advance({ type: "verified" });
  await nars.publish(nar.name, download.file.path);
  const file = { fileHash, fileSize };
  await metadata.apply([{ kind: "nar-kept", narName: nar.name, file, atMs: nowMs() }]);
  download.advance({ type: "kept" });
}

function isCancelled(error: unknown): boolean {
  return error instanceof Failure && error.facts["reason"] === "cancelled";
}

function check(nar: NarRow, measure: NarMeasure): void {
  if (measure.kind === "undecodable") throw new Mismatch("undecodable", measure.detail);
  if (measure.narSize !== nar.narSize) {
    throw new Mismatch("nar_size", `the NAR has ${measure.narSize} bytes, not ${nar.narSize}`);
  }
  const narHash = sha256FromDigest(measure.digest);
  if (narHash !== nar.narHash) {
    throw new Mismatch("nar_hash", `the NAR's hash is ${narHash}, not ${nar.narHash}`);
  }
}

function blame(
  { log, metrics, demotions }: RunDownloadDeps,
  nar: NarRow,
  error: unknown,
  told: Facts & { readonly upstream: string },
): void {
  const facts = { ...told, detail: messageOf(error) };
  if (error instanceof Mismatch) {
    demotions.add(nar.name, told.upstream, "bad");
    metrics.count("verification_failures_total", { reason: error.reason });
    log.error("nar verification failed", { ...facts, reason: error.reason });
  } else if (error instanceof Failure && error.kind === "upstream-down") {
    log.warn("download failed", facts);
  } else {
    log.error("download failed", facts);
  }
}
