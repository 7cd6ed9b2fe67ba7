import pLimit from "p-limit";
import { Failure, messageOf } from "../../base/failure.ts";
import type { NarFinder, NarRecord, NarRow } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { files } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { narNameOfReceived } from "./growing_file.ts";
import type { GrowingReservation } from "../../space/growing_reservation.ts";
import type { NarFailure } from "../sources/nar_attempts.ts";
import { Mismatch } from "../verify/check_nar.ts";
import type { NarMeasure, NarVerifier } from "../verify/nar_verifier.ts";
import type { Download } from "./download.ts";
import { discardDownload, downloadReservation, type RunDownloadDeps } from "./run_download.ts";
import { keepDownload } from "./transfer.ts";

export interface ReceivedFilesDeps {
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
export interface ReceivedHold {
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
