import type { Bytes } from "../../base/bytes.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import { Failure, reasonOf } from "../../base/failure.ts";
import { type FileIdentity, ForeignFile } from "./foreign_file.ts";
import { streamOf } from "../../base/stream_of.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { type NarName, narName } from "../../nix/nar_name.ts";
import { dice } from "../../runtime/current.ts";
import type { Space } from "../../space/space.ts";
import { narRowOf } from "../nar/nar_naming.ts";
import { SpoolFile } from "../upload/spool_file.ts";
import { FileMeasure, type MeasuredNar } from "../upload/file_measure.ts";
import { type MeasuredFile, stageNar, type StageNarDeps } from "../upload/stage_nar.ts";
import { UploadRefused } from "../upload/upload_outcome.ts";
import { checkNarFacts } from "../verify/check_nar.ts";
import type { NarVerifier } from "../verify/nar_verifier.ts";
import type { SourceEntry } from "./import_source.ts";
import { LinkedFile } from "./linked_file.ts";

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
