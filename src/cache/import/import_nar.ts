import type { Bytes } from "../../base/bytes.ts";
import { digestOf, filePieces } from "../../base/digest_of.ts";
import { Failure, reasonOf } from "../../base/failure.ts";
import { removeIfPresent } from "../../base/files.ts";
import { streamOf } from "../../base/stream_of.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import { type NarName, narName } from "../../nix/nar_name.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { dice } from "../../runtime/current.ts";
import type { Space } from "../../space/space.ts";
import type { Reservation } from "../../space/size_limit.ts";
import { narRowOf } from "../nar/nar_naming.ts";
import { FileMeasure, type MeasuredNar } from "../upload/file_measure.ts";
import { SpoolFile } from "../upload/spool_file.ts";
import { type MeasuredFile, stageNar, type StageNarDeps } from "../upload/stage_nar.ts";
import { UploadRefused } from "../upload/upload_body.ts";
import { checkNarFacts } from "../verify/check_nar.ts";
import type { NarVerifier } from "../verify/nar_verifier.ts";
import { type FileIdentity, ForeignFile } from "./foreign_file.ts";
import type { SourceEntry } from "./import_source.ts";

/** The treatment of a NAR file that the other cache has whole. */
export type Handling =
  /** Its bytes are read and written again. */
  | "copy"
  /** Both caches name one file. */
  | "link"
  /** The same, and the other cache's name goes when larder's row is written. */
  | "move";

export interface ImportNarDeps {
  readonly publishing: StageNarDeps;
  readonly space: Pick<Space, "fits" | "reserve" | "grow" | "kept" | "budget">;
  readonly verifier: Pick<NarVerifier, "start">;
  /** The folder of partial files. */
  readonly folder: string;
  readonly handling: Handling;
}

/** A NAR in the storage. */
export interface ImportedNar {
  readonly name: NarName;
  readonly fileSize: number;
  /** The other cache's file, of which these are the bytes. */
  readonly source?: FileIdentity;
}

/** A compressed file may be that much larger than its NAR, which is signed. */
const FILE_BYTES_MIN = 1 << 20;

/**
 * Stores the NAR file of an entry when it is the one that the narinfo describes. Throws a Mismatch
 * for another NAR, an UploadRefused where there is no room, and a Failure where it is unreadable.
 */
export async function importNar(
  deps: ImportNarDeps,
  { narinfo, nar }: SourceEntry,
  signal: AbortSignal,
): Promise<ImportedNar> {
  if (nar.kind === "stream") {
    const { fileSize, open } = nar;
    checkSize(narinfo, fileSize ?? 0);
    return await copied(deps, narinfo, { stream: await open(signal), fileSize }, signal);
  }
  await using from = await ForeignFile.open(nar, signal);
  const { fileSize, identity: source } = from;
  checkSize(narinfo, fileSize);
  const linked = deps.handling === "copy" ? undefined : await link(deps, narinfo, from);
  if (linked === undefined) {
    const stream = streamOf(from.pieces(signal));
    return { ...await copied(deps, narinfo, { stream, fileSize }, signal), source };
  }
  using file = linked;
  const { path } = file;
  const measured = await file.measured(signal);
  using measure = new FileMeasure(deps.verifier, toMeasure(narinfo, path, fileSize));
  const facts = await unlessAborted(measure.end(measured), signal);
  const publishing = { ...deps.publishing, nars: unsealed(deps.publishing.nars) };
  const stored = { file, measured: { ...facts, ...measured } };
  return { ...await keep({ publishing }, narinfo, stored), source };
}

/** Its holders may have it open: a change in the second of its last one leaves the seal equal. */
function unsealed(nars: StageNarDeps["nars"]): StageNarDeps["nars"] {
  return {
    remove: (at) => nars.remove(at),
    async put(at, path) {
      await nars.put(at, path);
      return undefined;
    },
  };
}

/** Throws where no file of this NAR is that large. */
function checkSize({ narSize }: Narinfo, fileSize: number): void {
  if (fileSize <= 2 * narSize + FILE_BYTES_MIN) return;
  throw new Failure("corrupt", `its NAR file of ${fileSize} bytes is too large for its NAR`);
}

/** `undefined` where only a copy can move the file, or be larder's alone. */
async function link(
  { space, folder, handling }: ImportNarDeps,
  narinfo: Narinfo,
  from: ForeignFile,
): Promise<LinkedFile | undefined> {
  // Its owner could change its mode back.
  if (from.owner !== Deno.statSync(folder).uid) return undefined;
  const reservation = await space.reserve(from.fileSize);
  if (reservation === undefined) throw new UploadRefused("no-room", "expected room");
  const { narHash, compression } = narinfo;
  const path = `${folder}/${narName(narHash, compression)}.${dice.uuid()}.part`;
  try {
    return new LinkedFile({ from, path, space, reservation });
  } catch (error) {
    reservation[Symbol.dispose]();
    const isOtherFileSystem = error instanceof Error && "code" in error && error.code === "EXDEV";
    if (handling === "move" && isOtherFileSystem) return undefined;
    if (error instanceof Failure) throw error;
    throw new CannotLink(from.place.path, reasonOf(error), error);
  }
}

/** The file system refuses links: it refuses them for every file. */
export class CannotLink extends Failure {
  constructor(from: string, reason: string, cause: unknown) {
    super("broken", `Cannot link ${from}: ${reason}; import with --copy`, {}, cause);
  }
}

interface OpenedNar {
  readonly stream: ReadableStream<Bytes>;
  readonly fileSize: number | undefined;
}

async function copied(
  deps: ImportNarDeps,
  narinfo: Narinfo,
  { stream, fileSize: length }: OpenedNar,
  signal: AbortSignal,
): Promise<ImportedNar> {
  const { space, folder, verifier } = deps;
  const name = narRowOf(narinfo).name;
  try {
    using file = await SpoolFile.open({ narName: name, folder, space, length });
    using measure = new FileMeasure(verifier, toMeasure(narinfo, file.path, length));
    for await (const piece of stream) {
      signal.throwIfAborted();
      checkSize(narinfo, file.fileSize + piece.length);
      await file.write(piece);
      measure.grown(file.fileSize);
    }
    file.close();
    const { fileHash, fileSize } = file;
    const measured = await unlessAborted(measure.end({ fileHash, fileSize }), signal);
    return await keep(deps, narinfo, {
      file,
      measured: { ...measured, fileHash, fileSize },
    });
  } finally {
    if (!stream.locked) await stream.cancel().catch(() => undefined);
  }
}

function toMeasure({ compression }: Narinfo, path: string, length: number | undefined) {
  return { path, compression, length };
}

interface Measured extends MeasuredNar, Pick<MeasuredFile, "fileHash" | "fileSize"> {}

interface MeasuredImport {
  readonly file: Pick<SpoolFile, "path" | "ledgerBytes" | "kept">;
  readonly measured: Measured;
}

/** Keeps the file, if it is the narinfo's NAR: its bytes count from here on. */
async function keep(
  { publishing }: Pick<ImportNarDeps, "publishing">,
  narinfo: Narinfo,
  { file, measured }: MeasuredImport,
): Promise<ImportedNar> {
  checkNarFacts(narinfo, measured);
  const { path, ledgerBytes } = file;
  const name = await stageNar(publishing, { ...measured, path, ledgerBytes });
  await file.kept();
  return { name, fileSize: measured.fileSize };
}

/** Nobody else opens it from here on. */
const OWN_MODE = 0o600;

/** Origin and place of a linked file. */
interface LinkedFileParts {
  /** The file of the other cache, which belongs to this user. */
  readonly from: ForeignFile;
  /** The path of the link. */
  readonly path: string;
  readonly space: Pick<Space, "kept">;
  /** Reservation of the file's size. */
  readonly reservation: Reservation;
}

/**
 * A second name of another cache's file. Leaving the scope removes that name, unless the storage
 * has taken it, and gives the space back.
 */
export class LinkedFile implements Disposable {
  readonly path: string;
  readonly #from: ForeignFile;
  readonly #space: Pick<Space, "kept">;
  readonly #reservation: Reservation;

  /** Throws where the file system cannot link it, or another file has its name now. */
  constructor({ from, path, space, reservation }: LinkedFileParts) {
    Deno.linkSync(from.place.path, path);
    try {
      if (!from.isAt(path)) {
        throw new Failure("absent", `Cannot read ${from.place.path}: it was replaced meanwhile`);
      }
      Deno.chmodSync(path, OWN_MODE);
    } catch (error) {
      removeIfPresent(path);
      throw error;
    }
    this.path = path;
    this.#from = from;
    this.#space = space;
    this.#reservation = reservation;
  }

  get ledgerBytes(): number | undefined {
    return this.#reservation.ledgerBytes;
  }

  /** Reads the whole file. Throws where it grows: a holder could write it without end. */
  async measured(
    signal: AbortSignal,
  ): Promise<{ readonly fileHash: Sha256; readonly fileSize: number }> {
    let fileSize = 0;
    const digest = await digestOf(filePieces(this.path), ({ length }) => {
      signal.throwIfAborted();
      fileSize += length;
      if (fileSize > this.#from.fileSize) {
        throw new Failure("absent", `Cannot read ${this.#from.place.path}: it became larger`);
      }
    });
    return { fileHash: sha256FromDigest(digest), fileSize };
  }

  /** Counts the bytes as used from now on: the storage has taken the file. */
  async kept(): Promise<void> {
    await this.#space.kept(this.#reservation);
  }

  [Symbol.dispose](): void {
    try {
      removeIfPresent(this.path);
    } finally {
      this.#reservation[Symbol.dispose]();
    }
  }
}
