import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import type { GrowingReservation, SpareSpace } from "../../space/growing_reservation.ts";
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
import type { NarTarget } from "../sources/nar_attempts.ts";
import { checkFile, checkNar, type Mismatch } from "../verify/check_nar.ts";
import type { DecodedNars, DecodedPlace } from "../verify/decoded_nars.ts";
import type { NarMeasure, NarVerifier, Verification } from "../verify/nar_verifier.ts";
import { verifySpan } from "../verify/verify_span.ts";
import type { Download } from "./download.ts";
import { receivedPath } from "./growing_file.ts";

export interface TransferDeps {
  readonly keeping: PublishNarDeps;
  readonly fetcher: NarFetcher;
  readonly verifier: Pick<NarVerifier, "start">;
  readonly tracer: Tracer;
  /** Takes NARs whose files will be recompressed. */
  readonly decoded?: Pick<DecodedNars, "place"> | undefined;
}

export interface TransferParts {
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
export interface ArrivedFile {
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
