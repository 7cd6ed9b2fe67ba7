import { Failure, messageOf } from "../../base/failure.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import type { GrowingReservation } from "../../space/growing_reservation.ts";
import type { NarFailure } from "../sources/nar_attempts.ts";
import { Mismatch } from "../verify/check_nar.ts";
import type { NarMeasure, NarVerifier } from "../verify/nar_verifier.ts";
import type { Download } from "./download.ts";
import { downloadReservation } from "./download_reservation.ts";
import { discardDownload, type RunDownloadDeps } from "./run_download.ts";
import { keepDownload } from "./transfer.ts";

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
    log[isLeft ? "debug" : "warn"]("received nar not kept", { nar: nar.name, error: detail });
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
  const { size: fileSize } = await Deno.stat(path);
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
