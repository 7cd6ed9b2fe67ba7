import { messageOf } from "../../base/failure.ts";
import {
  FIRST_STEP_BYTES,
  GrowingReservation,
  type GrowingSpace,
  type SpareSpace,
} from "../../space/growing_reservation.ts";
import { limitOrigin, moreRoomHint } from "../../space/size_limit.ts";
import type { Space } from "../../space/space.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { isOfFullDisk } from "../../telemetry/events.ts";
import type { NarFinder, NarRecord, NarRow } from "../../metadata/metadata_store.ts";
import { type Download, ELSEWHERE } from "./download.ts";
import { NarAttempts, type NarAttemptsDeps, type NarFailure } from "../sources/nar_attempts.ts";
import { announcedFileSize, fileSizeLimit } from "../nar/nar_naming.ts";
import { notKeptBy } from "../nar/publish_nar.ts";
import type { KeepOutageLog } from "./keep_outage_log.ts";
import { Transfer, type TransferDeps } from "./transfer.ts";
import type { WorkLeases } from "../../locks/work_leases.ts";

export interface RunDownloadDeps {
  readonly attempts: NarAttemptsDeps;
  readonly transfer: TransferDeps;
  readonly space: Pick<
    Space,
    "mayFit" | "ledgerFailure" | "diskFull" | "budget" | keyof GrowingSpace | keyof SpareSpace
  >;
  /** Logs failures of this machine. */
  readonly outages: Pick<KeepOutageLog, "failed" | "noRoom" | "kept">;
  /** True while the process stops: the next one verifies a file that is here whole. */
  readonly isStopping: () => boolean;
}

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

/**
 * Brings one NAR file to the storage. Never throws: a failure is the download's state. Resolves to
 * the failure; `undefined` for a file that is kept or may pass through.
 */
async function runDownload(
  deps: RunDownloadDeps,
  download: Download,
  nar: NarRow,
  requestId: string,
): Promise<NarFailure | undefined> {
  using reservation = await downloadReservation(deps.space, nar);
  let failure: NarFailure | undefined;
  if (reservation === undefined) failure = { reason: "room", detail: "there is no room for it" };
  else failure = await bring(deps, { download, nar, reservation, requestId });
  if (failure === undefined || download.state.state === "kept") return undefined;
  const mayPassThrough = failure.reason === "room" || failure.reason === "disk";
  const isLeft = isLeftForNext(deps, download);
  download.advance({ type: "error", reason: failure.detail, mayPassThrough });
  // The file must go before its space is given back.
  if (!isLeft) discardDownload(download, deps.attempts.logging.log);
  if (failure.reason === "room") logNoRoom(deps, nar, { detail: failure.detail, requestId });
  if (failure.reason === "disk") deps.space.diskFull();
  return mayPassThrough ? undefined : failure;
}

/** A download for a request. */
interface RequestedDownload {
  readonly download: Download;
  readonly nar: NarRow;
  readonly reservation: GrowingReservation;
  readonly requestId: string;
}

/** Resolves to the reason why the file is not kept. */
async function bring(
  deps: RunDownloadDeps,
  { download, nar, reservation, requestId }: RequestedDownload,
): Promise<NarFailure | undefined> {
  const { outages, transfer: { keeping: { nowMs } }, attempts: { logging: { log } } } = deps;
  const startedAtMs = nowMs();
  try {
    using transfer = new Transfer(deps.transfer, { download, nar, reservation, spare: deps.space });
    const attempts = new NarAttempts(deps.attempts, { nar, target: transfer, requestId });
    const result = await attempts.run();
    const facts = attempts.log.facts(result.upstream ?? "");
    if (result.type === "whole") {
      const { fileSize: file_size } = result.end;
      outages.kept(file_size);
      attempts.log.stored(result.contributors);
      const duration_ms = nowMs() - startedAtMs;
      log.info("nar cached successfully", { ...facts, file_size, duration_ms });
      await reservation.kept();
      return undefined;
    }
    const { reason, detail } = result;
    if (reason === "cancelled") log.event("download-failed", { ...facts, detail });
    const isOurs = reason === "disk" || reason === "broken";
    if (isOurs && !isLeftForNext(deps, download)) {
      const by = notKeptBy(result.error);
      outages.failed(transfer.neededBytes, by, { ...facts, detail });
      deps.attempts.logging.record?.narNotStored(nar.name, { reason: by });
    }
    return result;
  } catch (error) {
    const detail = messageOf(error);
    log.event("download-failed", { nar: nar.name, error: detail, request_id: requestId });
    return { reason: "broken", detail };
  }
}

/** True while the process stops: the whole file waits for the check of the next one. */
function isLeftForNext(
  { isStopping }: Pick<RunDownloadDeps, "isStopping">,
  { state }: Download,
): boolean {
  return state.state === "received" && isStopping();
}

/** Removes the file of a download that is not kept. Failures are logged. */
export function discardDownload({ file }: Download, log: Logger): void {
  try {
    file.remove();
  } catch (error) {
    log.event("download-not-removed", { path: file.path, error: messageOf(error) });
  }
}

/** Logs and records the figures of a file that does not fit; it passes through. */
function logNoRoom(
  { attempts, outages, space }: Pick<RunDownloadDeps, "attempts" | "outages" | "space">,
  nar: NarRow,
  { detail, requestId }: { readonly detail: string; readonly requestId: string },
): void {
  const { limit, limitBytes, usedBytes, reservedBytes, pinnedBytes } = space.budget;
  const bytes = nar.fileSize ?? nar.narSize;
  if (space.ledgerFailure !== undefined) {
    const facts = { nar: nar.name, detail: space.ledgerFailure, request_id: requestId };
    const by = isOfFullDisk(facts) ? "disk" : "database";
    attempts.logging.record?.narNotStored(nar.name, { reason: by });
    return outages.failed(bytes, by, facts);
  }
  const room = { bytes, limitBytes, limitSource: limit.source, pinnedBytes };
  attempts.logging.record?.narNotStored(nar.name, { reason: "no_room", ...room });
  outages.noRoom(bytes, {
    nar: nar.name,
    detail,
    ...(nar.fileSize === undefined ? {} : { file_size: nar.fileSize }),
    limit_bytes: limitBytes,
    limit_from: limitOrigin(limit.source, limit.reserveBytes),
    used_bytes: usedBytes,
    reserved_bytes: reservedBytes,
    pinned_bytes: pinnedBytes,
    request_id: requestId,
    hint: `${moreRoomHint(limit.source)}: no room came free for it`,
  });
}

/**
 * The space of one download: none until an upstream has answered with the file. `undefined` when no
 * eviction can make enough space.
 */
export async function downloadReservation(
  space: Pick<Space, "budget" | "mayFit"> & GrowingSpace,
  nar: NarRow,
): Promise<GrowingReservation | undefined> {
  const limitBytes = announcedFileSize(nar) ?? fileSizeLimit(nar);
  const firstBytes = announcedFileSize(nar) ?? Math.min(FIRST_STEP_BYTES, limitBytes);
  if (!space.mayFit(firstBytes)) return undefined;
  const reservation = new GrowingReservation(space, { firstBytes, limitBytes });
  // Without a limit one reservation covers every size.
  if (space.budget.limitBytes === Infinity) await reservation.grow(limitBytes);
  return reservation;
}
