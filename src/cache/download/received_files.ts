import pLimit from "p-limit";
import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import type { NarFinder, NarRecord, NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { files } from "../../runtime/current.ts";
import type { GrowingReservation, SpareSpace } from "../../space/growing_reservation.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Span, Tracer } from "../../telemetry/tracer.ts";
import {
  type FetchEnd,
  type FetchOutcome,
  type FetchProgress,
  type NarFetch,
  type NarFetcher,
  narOrderOf,
} from "../fetch/nar_fetcher.ts";
import { mayRecompress } from "../forms/recompressed.ts";
import {
  announcedFileSize,
  fileSizeLimit,
  hasKnownFileHash,
  signedRowOf,
} from "../nar/nar_naming.ts";
import { publishNar, type PublishNarDeps } from "../nar/publish_nar.ts";
import type { NarFailure, NarTarget } from "../sources/nar_attempts.ts";
import { checkFile, checkNar, Mismatch, verifySpan } from "../verify/check_nar.ts";
import type { DecodedNars, DecodedPlace } from "../verify/decoded_nars.ts";
import type { NarMeasure, NarVerifier, Verification } from "../verify/nar_verifier.ts";
import { narNameOfReceived, receivedPath } from "./growing_file.ts";
import {
  discardDownload,
  type Download,
  downloadReservation,
  type RunDownloadDeps,
} from "./run_download.ts";

interface ReceivedFilesDeps {
  readonly metadata: Pick<NarFinder, "findNar">;
  readonly isInFlight: (narName: NarName) => boolean;
  /** Verifies the file, and keeps it if it is right. Never rejects. */
  readonly verify: (file: ReceivedFile) => Promise<void>;
  /** Files that are verified at once, beside those that a client waits for. */
  readonly atOnceMax: number;
  /** True while the process stops: the next one verifies the waiting files. */
  readonly isStopping: () => boolean;
  readonly log: Pick<Logger, "event">;
}

/** A whole file that another process left. */
export interface ReceivedFile {
  readonly nar: NarRecord;
  readonly path: string;
  readonly fileSize: number;
  /** The time of its last byte. */
  readonly receivedAtMs: number;
  /** Tries so far. */
  readonly tries: number;
}

/**
 * A file without room gets another try with each search for dead members, which is each ten
 * seconds: until then the dead one's reservation counts.
 */
const TRIES_MAX = 6;

/** The whole files of other processes that are not verified yet, and their tries. */
export class ReceivedFiles {
  readonly #deps: ReceivedFilesDeps;
  readonly #limit: ReturnType<typeof pLimit>;
  /** All files without a check result. */
  readonly #files = new Map<NarName, ReceivedFile>();
  /** The names of files whose check has not begun. */
  readonly #waiting = new Set<NarName>();
  /** Files for the next run of `verify`. */
  #added: ReceivedFile[] = [];

  constructor(deps: ReceivedFilesDeps) {
    this.#deps = deps;
    this.#limit = pLimit(deps.atOnceMax);
  }

  has(narName: NarName): boolean {
    return this.#files.has(narName);
  }

  /** All files without a check result. */
  list(): Iterable<ReceivedFile> {
    return this.#files.values();
  }

  /** The file, which its caller verifies at once; `undefined` once a check runs. */
  take(narName: NarName): ReceivedFile | undefined {
    return this.#waiting.delete(narName) ? this.#files.get(narName) : undefined;
  }

  /** The file waits for another try. False after the last one. */
  putBack(file: ReceivedFile): boolean {
    if (file.tries >= TRIES_MAX) return false;
    const again = { ...file, tries: file.tries + 1 };
    this.#files.set(file.nar.name, again);
    this.#waiting.add(file.nar.name);
    this.#added.push(again);
    return true;
  }

  /** This try is over. Unless the file was put back, it has its check result. */
  over(file: ReceivedFile): void {
    const { name } = file.nar;
    if (this.#files.get(name) === file) this.#files.delete(name);
  }

  /**
   * Adds whole files that other processes left. Removes a file whose NAR is stored, in flight or
   * unknown. Never rejects.
   */
  async add(paths: readonly string[]): Promise<void> {
    await Promise.all(paths.map((path) => this.#add(path)));
  }

  /** Tries each once, small ones first. Resolves when they are verified. Never rejects. */
  async verify(): Promise<void> {
    const files = this.#added.sort((a, b) => a.fileSize - b.fileSize);
    this.#added = [];
    const { isStopping, verify } = this.#deps;
    await Promise.all(files.map(({ nar }) =>
      this.#limit(async () => {
        const file = isStopping() ? undefined : this.take(nar.name);
        if (file !== undefined) await verify(file);
      })
    ));
  }

  async #add(path: string): Promise<void> {
    const { metadata, isInFlight, log } = this.#deps;
    const name = narNameOfReceived(path);
    try {
      const nar = name && await metadata.findNar(name);
      if (nar && nar.kept === undefined && !isInFlight(nar.name) && !this.has(nar.name)) {
        const { size: fileSize, mtime } = files.statSync(path);
        const file = { nar, path, fileSize, receivedAtMs: mtime?.getTime() ?? Infinity, tries: 1 };
        this.#files.set(nar.name, file);
        this.#waiting.add(nar.name);
        this.#added.push(file);
      } else files.removeSync(path);
    } catch (error) {
      log.event("received-nar-not-resumed", { path, error: messageOf(error) });
    }
  }
}

/** The hold of this process on a whole file that another one left. */
interface ReceivedHold {
  /** Called before the file is stored: from then on it has one name. */
  readonly claim: () => void;
  /** Called where there is no room. True: the file waits for another try. */
  readonly putBack: () => boolean;
}

/** Keeps a whole file that another process left, if it is right; else removes it. Never throws. */
export async function runReceived(
  deps: RunDownloadDeps,
  { download, nar, hold }: Omit<ReceivedParts, "reservation">,
): Promise<NarFailure | undefined> {
  const { attempts: { candidates: { nameOf }, logging: { log } } } = deps;
  try {
    await nameOf?.(nar.name);
    using reservation = await downloadReservation(deps.space, nar);
    if (reservation === undefined) throw noRoom();
    await keep(deps, { download, nar, reservation, hold });
    log.info("received nar kept", { nar: nar.name, file_size: download.fileSize ?? 0 });
    return undefined;
  } catch (error) {
    const detail = messageOf(error);
    // A hash that ends with its thread says nothing about the file.
    const isLeft = (deps.isStopping() && !(error instanceof Mismatch)) ||
      mayWait(error, download, hold);
    download.advance({ type: "error", reason: detail });
    if (!isLeft) discardDownload(download, log);
    const level = isLeft ? "debug" : "warn";
    log.event("received-nar-not-kept", { nar: nar.name, error: detail }, level);
    return { reason: "broken", detail };
  }
}

/** A client does not wait for room: larder passes the file through to it. */
function mayWait(error: unknown, { isWanted }: Download, { putBack }: ReceivedHold): boolean {
  return error instanceof Failure && error.kind === "overloaded" && !isWanted && putBack();
}

interface ReceivedParts {
  readonly download: Download;
  readonly hold: ReceivedHold;
  readonly nar: NarRow;
  readonly reservation: GrowingReservation;
}

/** Goes on behind the last byte. Throws for a wrong file. */
async function keep(
  { transfer: { keeping, verifier } }: Pick<RunDownloadDeps, "transfer">,
  { download, nar, reservation, hold }: ReceivedParts,
): Promise<void> {
  const { path } = download.file;
  const { size: fileSize } = await files.stat(path);
  if (await reservation.grow(fileSize) < fileSize) throw noRoom();
  download.advance({ type: "opened", fileSize });
  const digest = await fileDigest(verifier, path, fileSize);
  const measure = async (): Promise<NarMeasure> => {
    const { compression, narSize } = nar;
    if (compression === "none") return { kind: "measured", digest, narSize: fileSize };
    using running = verifier.start({ path: download.file.path, compression, narSizeMax: narSize });
    running.grown(fileSize, true);
    return await running.measure;
  };
  await keepDownload(keeping, download, nar, {
    transfer: { measure, judged: hold.claim },
    end: { type: "end", digest, fileSize, maybeShort: false },
    reservedBytes: reservation.ledgerBytes,
  });
  await reservation.kept();
}

function noRoom(): Failure {
  return new Failure("overloaded", "Cannot keep received file: there is no room for it");
}

/** Of the file itself, on a verify thread. */
async function fileDigest(
  verifier: Pick<NarVerifier, "start">,
  path: string,
  fileSize: number,
): Promise<Uint8Array> {
  using hashing = verifier.start({ path, compression: "none", narSizeMax: fileSize });
  hashing.grown(fileSize, true);
  const measure = await hashing.measure;
  if (measure.kind === "measured") return measure.digest;
  throw new Failure("broken", `Cannot hash received file: ${measure.detail}`);
}

export interface TransferDeps {
  readonly keeping: PublishNarDeps;
  readonly fetcher: NarFetcher;
  readonly verifier: Pick<NarVerifier, "start">;
  readonly tracer: Tracer;
  /** Takes NARs whose files will be recompressed. */
  readonly decoded?: Pick<DecodedNars, "place"> | undefined;
}

interface TransferParts {
  readonly download: Download;
  readonly nar: NarRow;
  readonly reservation: Pick<
    GrowingReservation,
    "bytes" | "grow" | "ledgerBytes" | "doubt"
  >;
  /** The room for a file whose size is in doubt. */
  readonly spare: SpareSpace;
}

/** A download's growing file, as the target of its attempts. */
export class Transfer implements NarTarget, Disposable {
  readonly #deps: TransferDeps;
  readonly #download: Download;
  #nar: NarRow;
  readonly #reservation: TransferParts["reservation"];
  readonly #spare: SpareSpace;
  #fetch: NarFetch;
  #verification: Verification | undefined;
  #place: DecodedPlace | undefined;
  #decoded: Bytes | undefined;
  /** The span from the start of hashing to the check result. */
  #verifying: Span | undefined;
  #announced: { readonly fileSize?: number } | undefined;
  #fileSize: number | undefined;
  #received = 0;

  constructor(deps: TransferDeps, { download, nar, reservation, spare }: TransferParts) {
    this.#deps = deps;
    this.#download = download;
    this.#nar = nar;
    this.#reservation = reservation;
    this.#spare = spare;
    this.#fetch = this.#begin();
  }

  get received(): number {
    return this.#received;
  }

  /**
   * Bytes that a disk must have room for: the file's by its narinfo or the upstream. If neither says,
   * those of its NAR, for those received fit where the rest does not.
   */
  get neededBytes(): number {
    return this.#fileSize ?? announcedFileSize(this.#nar) ??
      Math.max(this.#received, this.#nar.narSize);
  }

  get isGrowing(): boolean {
    return this.#download.state.state === "receiving";
  }

  get isPromised(): boolean {
    return this.#download.isPromised || this.#download.state.state === "failed";
  }

  get isWanted(): boolean {
    return this.#download.isWanted;
  }

  get bytesPerSecond(): number | undefined {
    return this.#download.rate.bytesPerSecond;
  }

  /**
   * The download gets the first answer's size with the first bytes: until then, a source with
   * another size may follow.
   */
  async from(source: NarSource, taken: () => void): Promise<FetchOutcome> {
    // The fetch hashes the file, which is the NAR itself.
    if (this.#nar.compression === "none") {
      this.#verifying ??= verifySpan(this.#deps.tracer, this.#nar);
    }
    const outcome = await this.#fetch.from(source, taken, !this.isWanted);
    if (outcome.type === "end") this.#open();
    return outcome;
  }

  abandon(): void {
    // At once, so that a client that comes now gets a download of its own.
    this.#download.advance({ type: "error", reason: "no answer came in time for a prefetch" });
    this.#fetch[Symbol.dispose]();
  }

  async judge(end: FetchEnd): Promise<void> {
    const { keeping } = this.#deps;
    const { ledgerBytes: reservedBytes } = this.#reservation;
    const received = { transfer: this, end, reservedBytes };
    await keepDownload(keeping, this.#download, this.#nar, received);
    if (this.#decoded !== undefined) this.#place?.keep(this.#decoded);
  }

  refused(reason: Mismatch["reason"]): void {
    this.judged(reason);
  }

  startOver(): void {
    this[Symbol.dispose]();
    this.#verification = undefined;
    this.#announced = undefined;
    this.#received = 0;
    this.#download.advance({ type: "startedOver" });
    this.#fetch = this.#begin();
  }

  doubtFile(): boolean {
    const signed = signedRowOf(this.#nar);
    if (signed === undefined) return false;
    this.#nar = signed;
    this.#reservation.doubt(fileSizeLimit(signed), this.#spare);
    this.startOver();
    return true;
  }

  /** The measure of the decompressed file; only when all bytes are on disk. */
  async measure({ digest, fileSize }: FetchEnd): Promise<NarMeasure> {
    const measure: NarMeasure = this.#nar.compression === "none"
      ? { kind: "measured", digest, narSize: fileSize }
      : await this.#decompress();
    if (measure.kind === "measured") {
      this.#decoded = measure.nar;
      this.#verifying?.set({ "larder.nar.size": measure.narSize });
    }
    return measure;
  }

  /** Ends the span of the verification; `wrong` is a label value. */
  judged(wrong?: Mismatch["reason"]): void {
    // A file with the wrong hash is not even decompressed.
    if (wrong !== undefined) {
      (this.#verifying ??= verifySpan(this.#deps.tracer, this.#nar)).fail(wrong);
    }
    this.#verifying?.end();
    this.#verifying = undefined;
  }

  [Symbol.dispose](): void {
    this.#fetch[Symbol.dispose]();
    this.#verification?.[Symbol.dispose]();
    this.#place?.[Symbol.dispose]();
    [this.#place, this.#decoded] = [undefined, undefined];
    // A verification that ends early has no check result, and no failure.
    this.judged();
  }

  #begin(): NarFetch {
    const { path } = this.#download.file;
    const order = { ...narOrderOf(this.#nar), path, roomBytes: this.#reservation.bytes };
    // Without a file hash the readers wait for the NAR hash, so it is computed during the transfer.
    if (!hasKnownFileHash(this.#nar)) this.#verification = this.#startVerifying();
    return this.#deps.fetcher.begin(order, {
      progress: (progress) => this.#progressed(progress),
      room: (bytes) => this.#reservation.grow(bytes),
    });
  }

  async #decompress(): Promise<NarMeasure> {
    using verification = this.#verification ?? this.#startVerifying();
    this.#verification = undefined;
    verification.grown(this.#received, true);
    return await verification.measure;
  }

  #startVerifying(): Verification {
    this.judged();
    this.#verifying = verifySpan(this.#deps.tracer, this.#nar);
    const { name, compression, narSize } = this.#nar;
    const { path } = this.#download.file;
    if (mayRecompress(name)) this.#place ??= this.#deps.decoded?.place(name, narSize);
    const givesNar = this.#place !== undefined;
    return this.#deps.verifier.start({ path, compression, narSizeMax: narSize, givesNar });
  }

  #progressed(progress: FetchProgress): void {
    if (progress.type === "opened") {
      const fileSize = announcedFileSize(this.#nar) ?? progress.fileSize;
      this.#fileSize = fileSize;
      this.#announced = fileSize === undefined ? {} : { fileSize };
      return;
    }
    this.#open();
    this.#received = progress.received;
    this.#download.advance(progress);
    this.#verification?.grown(progress.received, false);
  }

  #open(): void {
    if (this.#announced === undefined) return;
    if (this.#download.state.state === "opening") {
      this.#download.advance({ type: "opened", ...this.#announced });
    }
    this.#announced = undefined;
  }
}

/** A file with all of its bytes, and how they came. */
interface ArrivedFile {
  readonly transfer: Pick<Transfer, "measure" | "judged">;
  readonly end: FetchEnd;
  /** The file's bytes in the ledger; `undefined` without a limit. */
  readonly reservedBytes?: number | undefined;
}

/**
 * Checks the file hash, releases the file to readers, checks the NAR hash, publishes, writes the
 * row. Throws a Mismatch for wrong bytes. Where bytes may be missing, the download is still
 * receiving then, and none were released.
 */
export async function keepDownload(
  deps: PublishNarDeps,
  download: Download,
  nar: NarRow,
  received: ArrivedFile,
): Promise<void> {
  const { transfer, end, reservedBytes } = received;
  const { fileSize, digest } = end;
  const fileHash = sha256FromDigest(digest);
  checkFile(nar, { fileHash, fileSize });
  const now = nar.compression === "none" || (end.maybeShort && !hasKnownFileHash(nar));
  const measured = now ? await transfer.measure(end) : undefined;
  if (measured !== undefined) checkNar(nar, measured);
  const released = measured !== undefined || hasKnownFileHash(nar);
  download.advance({ type: "end", fileSize, released });
  if (download.state.state === "failed") throw new Failure("corrupt", download.state.reason);
  if (measured === undefined) {
    // Without a file hash the check began during the transfer, and opens the file by its path.
    if (hasKnownFileHash(nar)) download.file.rename(receivedPath(download.file.path));
    checkNar(nar, await transfer.measure(end));
  }
  transfer.judged();
  download.advance({ type: "verified" });
  const { name, file: { path } } = download;
  await publishNar(deps, { name, path, fileHash, fileSize, reservedBytes });
  download.advance({ type: "kept" });
}
