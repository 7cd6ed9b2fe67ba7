import { ClientAddresses } from "../../base/client_addresses.ts";
import { digestOf } from "../../base/digest_of.ts";
import { DATABASE_AWAY, Failure, type FailureKind, messageOf } from "../../base/failure.ts";
import { isDiskFull } from "../../base/os_error.ts";
import { RecentRate } from "../../base/recent_rate.ts";
import {
  type Compression,
  COMPRESSIONS,
  MAGIC_BYTES,
  unsupportedMagic,
} from "../../nix/compression.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import {
  compressionOf,
  hashOf,
  type NarName,
  narName,
  narName as plainName,
} from "../../nix/nar_name.ts";
import { files } from "../../runtime/current.ts";
import type { Space } from "../../space/space.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Series } from "../../telemetry/metrics.ts";
import type { Tracer } from "../../telemetry/tracer.ts";
import type { KeepOutageLog } from "../download/keep_outage_log.ts";
import type { InFlight, TransferProgress } from "../fetch/nar_fetcher.ts";
import { formerFile } from "../forms/recompressed.ts";
import type { Requester } from "../nar/nar_answer.ts";
import { notKeptBy } from "../nar/publish_nar.ts";
import type { NarVerifier } from "../verify/nar_verifier.ts";
import { FileMeasure, type MeasuredNar } from "./file_measure.ts";
import { keptFile, type StoredEntries } from "./narinfo_uploads.ts";
import { SpoolFile } from "./spool_file.ts";
import { stageNar, type StageNarDeps } from "./stage_nar.ts";
import {
  outcomeOf,
  piecesOf,
  type UploadBody,
  type UploadOutcome,
  UploadRefused,
} from "./upload_body.ts";

/** A store or a database that may answer the next time. */
const UNAVAILABLE_KINDS: readonly FailureKind[] = ["unavailable", "away", "overloaded"];

interface NarUploadsDeps {
  readonly publishing: StageNarDeps;
  readonly entries: StoredEntries;
  readonly space: Pick<Space, "fits" | "reserve" | "grow" | "kept" | "budget" | "diskFull">;
  readonly verifier: Pick<NarVerifier, "start">;
  /** This member's folder in the spool. */
  readonly folder: string;
  /** Has the files that could not be kept. */
  readonly outages: Pick<KeepOutageLog, "failed">;
  readonly telemetry: {
    /** Counts the received bytes. */
    readonly received: Pick<Series, "add">;
    readonly tracer: Tracer;
    readonly log: Logger;
  };
}

interface NarUpload {
  readonly narName: NarName;
  readonly body: UploadBody;
  readonly requester: Requester;
}

/** An upload, and its progress for the statistics. */
interface WatchedUpload extends NarUpload {
  readonly running: RunningUpload;
}

/** Hashes and sizes of an uploaded file. */
interface MeasuredUpload extends MeasuredNar {
  readonly fileHash: Sha256;
  readonly fileSize: number;
}

/** Takes uploaded NAR files: hashes them while they come in, and keeps them for their narinfos. */
export class NarUploads {
  readonly #deps: NarUploadsDeps;
  readonly running: RunningUploads;

  constructor(deps: NarUploadsDeps) {
    this.#deps = deps;
    this.running = new RunningUploads(deps.publishing.nowMs);
  }

  /** Resolves when the file is durable, or refused. */
  async accept(upload: NarUpload): Promise<UploadOutcome> {
    const { narName, body, requester: { client: { peer } } } = upload;
    using running = this.running.enter({ narName, fileSize: body.length, peer });
    const { entries: { reads }, telemetry: { tracer } } = this.#deps;
    const end = reads.begin(narName);
    try {
      const start = { name: "upload nar", facts: { "larder.nar": narName } };
      return await tracer.span(start, () => outcomeOf(() => this.#accept({ ...upload, running })));
    } finally {
      end();
    }
  }

  async #accept(upload: WatchedUpload): Promise<UploadOutcome> {
    const { narName, requester } = upload;
    if (narName !== plainName(hashOf(narName), compressionOf(narName))) {
      throw new UploadRefused("invalid", "expected a name of the file's SHA-256 alone");
    }
    if (await this.#isHere(narName, requester)) {
      await checkHash(upload);
      this.#deps.entries.touches.nar(narName);
      return { kind: "known" };
    }
    return await this.#store(upload);
  }

  async #isHere(narName: NarName, requester: Requester): Promise<boolean> {
    const { publishing: { metadata }, entries } = this.#deps;
    for (const name of ownNames(narName)) {
      const nar = await metadata.findNar(name, { fresh: true });
      if (nar?.kept === undefined) continue;
      if (formerFile(nar, nar.kept).fileHash !== hashOf(narName)) continue;
      if (await keptFile(entries, nar, requester) !== undefined) return true;
    }
    return false;
  }

  async #store(upload: WatchedUpload): Promise<UploadOutcome> {
    const { narName, body, requester: { requestId } } = upload;
    const { space, folder, publishing: { nowMs }, entries, telemetry: { log } } = this.#deps;
    const startedAtMs = nowMs();
    try {
      await checkFreeDisk({ folder, space, length: body.length });
      using file = await SpoolFile.open({ narName, folder, space, length: body.length });
      const measured = await this.#receive(upload, file);
      const { path, ledgerBytes } = file;
      const name = await stageNar(this.#deps.publishing, { ...measured, path, ledgerBytes });
      await file.kept();
      entries.touches.nar(name);
      log.info("nar uploaded", {
        nar: name,
        file_size: measured.fileSize,
        nar_size: measured.narSize,
        duration_ms: nowMs() - startedAtMs,
        request_id: requestId,
      });
      return { kind: "stored" };
    } catch (error) {
      if (error instanceof UploadRefused) throw error;
      const facts = { nar: narName, error: messageOf(error), request_id: requestId };
      // A disk that takes no files is one problem, be they downloads or uploads.
      if (!isUnavailable(error)) {
        this.#deps.outages.failed(body.length ?? 0, notKeptBy(error), facts);
      }
      log.event("upload-failed", facts);
      throw refusalOf(error, body, space);
    }
  }

  /** Throws UploadRefused for anything but a file of that name. */
  async #receive(
    { narName, body, running, requester: { client } }: WatchedUpload,
    file: SpoolFile,
  ): Promise<MeasuredUpload> {
    const compression = compressionOf(narName);
    const toMeasure = { path: file.path, compression, length: body.length, client };
    using measure = new FileMeasure(this.#deps.verifier, toMeasure);
    let begin = new Uint8Array();
    for await (const piece of piecesOf(body)) {
      if (compression === "none" && begin.length < MAGIC_BYTES) {
        begin = Uint8Array.of(...begin, ...piece.subarray(0, MAGIC_BYTES - begin.length));
        checkBegin(begin);
      }
      this.#deps.telemetry.received.add(piece.length);
      running.received(piece.length);
      await file.write(piece);
      measure.grown(file.fileSize);
    }
    running.ended();
    file.close();
    const { fileHash, fileSize } = file;
    checkName(narName, fileHash);
    return { fileHash, fileSize, ...await measure.end({ fileHash, fileSize }) };
  }
}

/** A full disk has a part of the stored files evicted. Any other failure evicts nothing. */
function refusalOf(
  error: unknown,
  { length }: UploadBody,
  space: Pick<Space, "diskFull">,
): UploadRefused {
  if (isDiskFull(error)) {
    space.diskFull();
    const line = `expected ${length ?? "more"} free bytes on the disk, which is full`;
    return new UploadRefused("no-room", line);
  }
  if (isUnavailable(error)) {
    const isAway = error instanceof Failure && error.kind === "away";
    return new UploadRefused(
      "overloaded",
      isAway ? DATABASE_AWAY : "expected a storage that answers",
      error,
    );
  }
  return new UploadRefused("no-room", "expected a storage that takes it", error);
}

function isUnavailable(error: unknown): boolean {
  return error instanceof Failure && UNAVAILABLE_KINDS.includes(error.kind);
}

/** Nix names a NAR in lzma like one without compression: its narinfo would come too late. */
function checkBegin(begin: Uint8Array): void {
  const compression = unsupportedMagic(begin);
  if (compression === undefined) return;
  const known = Object.keys(COMPRESSIONS).join(", ");
  throw new UploadRefused("invalid", `expected a compression of ${known}, got ${compression}`);
}

function checkName(narName: NarName, fileHash: Sha256): void {
  if (fileHash === hashOf(narName)) return;
  throw new UploadRefused("invalid", `expected bytes of the name's SHA-256, got ${fileHash}`);
}

/** Reads the same file again, without keeping it. */
async function checkHash({ body, narName, running }: WatchedUpload): Promise<void> {
  const digest = await digestOf(piecesOf(body), (piece) => running.received(piece.length));
  checkName(narName, sha256FromDigest(digest));
}

interface DiskCheck {
  /** A folder on the disk. */
  readonly folder: string;
  readonly space: Pick<Space, "budget" | "diskFull">;
  /** The announced size. */
  readonly length: number | undefined;
}

/**
 * Throws UploadRefused where the disk has too few free bytes. Nix sends the whole file again only
 * after a refusal before its bytes.
 */
async function checkFreeDisk({ folder, space, length = 0 }: DiskCheck): Promise<void> {
  const { limitBytes, usedBytes } = space.budget;
  // A file above the limit never fits, and gets another refusal.
  if (length > limitBytes) return;
  // Where the free bytes are unknown, the write itself fails.
  const { freeBytes } = await files.room(folder).catch(() => ({ freeBytes: Infinity }));
  if (length <= freeBytes) return;
  // Eviction makes room for the next try, where there is enough to evict.
  if (length <= freeBytes + usedBytes) space.diskFull();
  const line = `expected ${length} free bytes on the disk, and ${freeBytes} are free`;
  throw new UploadRefused("no-room", line);
}

interface RunningUploadParts {
  readonly narName: NarName;
  /** The announced size. */
  readonly fileSize: number | undefined;
  /** The client's address; `undefined` if unknown. */
  readonly peer: string | undefined;
}

/** The progress of one upload. */
interface RunningUpload extends Disposable {
  received(bytes: number): void;
  /** Call it after the last byte. */
  ended(): void;
}

/** The NAR uploads in flight. */
export class RunningUploads implements InFlight {
  readonly #nowMs: () => number;
  readonly #progress = new Set<() => TransferProgress>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get count(): number {
    return this.#progress.size;
  }

  progress(countMax: number): readonly TransferProgress[] {
    return this.#progress.values().take(countMax).map((progress) => progress()).toArray();
  }

  /** Counts one upload until the scope of the result ends. */
  enter({ peer, ...file }: RunningUploadParts): RunningUpload {
    const startedAtMs = this.#nowMs();
    const clients = new ClientAddresses();
    clients.enter(peer);
    const rate = new RecentRate(this.#nowMs);
    rate.note(0);
    let receivedBytes = 0;
    let state: TransferProgress["state"] = "receiving";
    const progress = () => ({
      ...{ ...file, state, receivedBytes, startedAtMs },
      bytesPerSecond: state === "receiving" ? rate.bytesPerSecond : undefined,
      clients: clients.listed(),
    });
    this.#progress.add(progress);
    return {
      received(bytes) {
        receivedBytes += bytes;
        rate.note(receivedBytes);
      },
      ended() {
        state = "verifying";
      },
      [Symbol.dispose]: () => void this.#progress.delete(progress),
    };
  }
}

/** Possible compressions of a file without an extension. Nix gives none to gzip. */
const UNNAMED: readonly Compression[] = ["none", "gzip", "zstd", "xz", "bzip2"];

/** Our names of the file that a client names so. */
export function ownNames(name: NarName): readonly NarName[] {
  if (compressionOf(name) !== "none") return [name];
  return UNNAMED.map((compression) => narName(hashOf(name), compression));
}
