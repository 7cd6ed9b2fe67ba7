import type { Bytes } from "../../base/bytes.ts";
import { ClientAddresses } from "../../base/client_addresses.ts";
import { DirectStream } from "../../base/direct_stream.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { Notifier } from "../../base/notifier.ts";
import { RecentRate } from "../../base/recent_rate.ts";
import { streamOf } from "../../base/stream_of.ts";
import type { WorkLeases } from "../../locks/work_leases.ts";
import type { NarFinder, NarRecord, NarRow } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { clock } from "../../runtime/current.ts";
import {
  FIRST_STEP_BYTES,
  GrowingReservation,
  type GrowingSpace,
  type SpareSpace,
} from "../../space/growing_reservation.ts";
import { limitOrigin, moreRoomHint } from "../../space/size_limit.ts";
import type { Space } from "../../space/space.ts";
import { isOfFullDisk } from "../../telemetry/events.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { NarPart } from "../fetch/nar_fetcher.ts";
import {
  type DownloadEvent,
  type DownloadState,
  isReleased,
  knownFileSize,
  nextState,
  readableUpTo,
} from "../verify/download_state.ts";
import { WHOLE_BYTES_MAX, WHOLE_WAIT_MS } from "../nar/nar_answer.ts";
import { announcedFileSize, fileSizeLimit } from "../nar/nar_naming.ts";
import { notKeptBy } from "../nar/publish_nar.ts";
import { NarAttempts, type NarAttemptsDeps, type NarFailure } from "../sources/nar_attempts.ts";
import { type GrowingFile, GrowingSource } from "./growing_file.ts";
import type { KeepOutageLog } from "./keep_outage_log.ts";
import { Transfer, type TransferDeps } from "./received_files.ts";

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

interface RunLeasedDeps {
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

/** Larger reads are a tenth faster, and a third more memory at the peak. */
const READ_BYTES = 128 * 1024;

/** This machine cannot keep the file; upstreams may still have it. */
export class NotKept extends Failure {}

/** The reason of a download that another member does, or has done. */
export const ELSEWHERE = "another member downloads it";

/** Another member downloads the file, or has stored it. */
export class KeptElsewhere extends NotKept {}

/** Passes the rest of a file that cannot be kept through to one client. */
type PassThroughRest = (part: NarPart) => AsyncGenerator<Bytes, void>;

/** A client that reads the growing file. */
export interface DownloadReader {
  readonly passThrough: PassThroughRest;
  /** The client's address; `undefined` if unknown. */
  readonly peer: string | undefined;
}

/** Origin of a download: a client, a prefetch, or a whole file that another process left. */
export type DownloadOrigin = "client" | "prefetch" | "received";

interface DownloadParts {
  readonly name: NarName;
  readonly file: GrowingFile;
  readonly startedAtMs: number;
  readonly origin: DownloadOrigin;
  /** True for the request of another larder. Default: false. */
  readonly isPassedOn?: boolean;
}

/** One NAR file in flight, for any number of readers, each at its own pace. */
export class Download {
  readonly name: NarName;
  readonly file: GrowingFile;
  readonly startedAtMs: number;
  readonly clients = new ClientAddresses();
  readonly rate = new RecentRate();
  #state: DownloadState = { state: "opening" };
  readonly #changed = new Notifier();
  #isPromised = false;
  #isWanted: boolean;
  readonly origin: DownloadOrigin;

  /** True if another larder requested it: larders on its way were not asked. */
  readonly isPassedOn: boolean;

  constructor({ name, file, startedAtMs, origin, isPassedOn = false }: DownloadParts) {
    this.name = name;
    this.file = file;
    this.startedAtMs = startedAtMs;
    this.origin = origin;
    this.isPassedOn = isPassedOn;
    this.#isWanted = origin === "client";
  }

  /** True if no client waited for the download at its start: a prefetch, or a received file. */
  get isBackground(): boolean {
    return this.origin !== "client";
  }

  /** False until a client waits for the download. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  /** Resolves when this member has the lease to download the file, or it ended before. */
  async hasLease(): Promise<void> {
    const isOpen = () => this.#state.state === "opening" && !this.#state.isOurs;
    while (isOpen()) await this.#changed.notified();
  }

  /** A client joins. */
  want(): void {
    this.#isWanted = true;
  }

  get state(): DownloadState {
    return this.#state;
  }

  /** How long the whole file has waited for the check of its NAR; `undefined`: it does not. */
  get unverifiedMs(): number | undefined {
    const isWaiting = this.#state.state === "received" && !this.#state.verified;
    return isWaiting ? this.rate.idleMs : undefined;
  }

  get fileSize(): number | undefined {
    return knownFileSize(this.#state);
  }

  /** True when every byte may be read without waiting. */
  get released(): boolean {
    return isReleased(this.#state);
  }

  /** True once an answer to the client has begun: its facts about the file must stay true. */
  get isPromised(): boolean {
    return this.#isPromised;
  }

  /** Call it when an answer to the client begins. */
  promise(): void {
    this.#isPromised = true;
  }

  advance(event: DownloadEvent): void {
    this.#state = nextState(this.#state, event);
    if (this.#state.state === "receiving") this.rate.note(this.#state.received);
    if (event.type === "end") this.rate.note(event.fileSize);
    this.#changed.notify();
  }

  /**
   * Resolves when the byte at `offset` may be read by a client that wants the file up to `end`
   * (default: its end). Resolves too when the file ends before `offset`. Throws when the download
   * has failed.
   */
  async readable(offset: number, end = Infinity): Promise<void> {
    while (this.#readable(offset, end) === undefined) await this.#changed.notified();
  }

  /**
   * Waits a second for all of a small download. Then the answer is one piece, and a wrong file
   * can still be replaced by another upstream's. No client gets its last byte later for that.
   */
  async settledIfSmall(fileSize = Infinity): Promise<void> {
    if (fileSize > WHOLE_BYTES_MAX || this.#isSettled) return;
    const settled = async () => {
      while (!this.#isSettled) await this.#changed.notified();
    };
    await clock.within(settled(), WHOLE_WAIT_MS);
  }

  get #isSettled(): boolean {
    return this.released || this.#state.state === "failed";
  }

  /** Resolves when the file is kept, or the download has failed. */
  async ended(): Promise<void> {
    while (this.#state.state !== "kept" && this.#state.state !== "failed") {
      await this.#changed.notified();
    }
  }

  /** Holds the file and lists the client until the scope of the result ends. */
  use(peer: string | undefined): Disposable {
    using held = new DisposableStack();
    held.use(this.file.use());
    held.use(this.clients.enter(peer));
    return held.move();
  }

  /** The whole file. Only when `released`. */
  bytes(): Bytes {
    return this.file.readAt(0, this.fileSize ?? 0);
  }

  /**
   * The bytes from `start` up to `end` (default: the file's end) as they arrive. Where the file
   * turns out not to be kept, the rest comes from `passThrough`. Call it while the file is in use;
   * the stream then holds it.
   */
  read({ passThrough, peer }: DownloadReader, start: number, end = Infinity): DirectStream {
    const at = (from: number, length: number) => this.file.readAt(from, length);
    const source = new GrowingSource({
      file: this.file,
      start,
      use: this.use(peer),
      readable: (position) => this.#readable(position, end),
      changed: this.#changed,
      restAfter: (failure, position) =>
        failure instanceof NotKept
          ? streamOf(passThrough({ start: position, end, sent: { from: start, at } }))
          : undefined,
    });
    return new DirectStream(source, READ_BYTES);
  }

  /**
   * The count of bytes from `offset` on for a client that wants the file up to `end`; 0 at the end.
   * `undefined`: none yet. Throws when the download has failed.
   */
  #readable(offset: number, end: number): number | undefined {
    const last = Math.min(end, this.fileSize ?? Infinity, readableUpTo(this.#state, end));
    if (this.released || last > offset) return Math.max(0, last - offset);
    if (this.#state.state === "failed") throw this.#failure(this.#state);
    return undefined;
  }

  #failure(
    { reason, mayPassThrough }: { readonly reason: string; readonly mayPassThrough?: boolean },
  ): Failure {
    const notKept = reason === ELSEWHERE ? KeptElsewhere : NotKept;
    const kind = mayPassThrough ? notKept : Failure;
    return new kind("absent", `Cannot read download: ${reason}`, { nar: this.name });
  }
}
