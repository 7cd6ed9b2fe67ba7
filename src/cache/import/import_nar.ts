import type { Bytes } from "../../base/bytes.ts";
import { Failure, reasonOf } from "../../base/failure.ts";
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
import type { SourceEntry, SourceNar } from "./import_source.ts";
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
  readonly space: Pick<Space, "reserve" | "grow" | "kept" | "budget">;
  readonly verifier: Pick<NarVerifier, "start">;
  /** The folder of partial files. */
  readonly folder: string;
  readonly handling: Handling;
}

/** A published NAR. */
export interface ImportedNar {
  readonly name: NarName;
  readonly fileSize: number;
}

const READ_BYTES = 1 << 20;

/**
 * Stores the NAR file of an entry when it is the one that the narinfo describes. Throws a Mismatch
 * for another NAR, an UploadRefused where there is no room, and a Failure where it is unreadable.
 */
export async function importNar(
  deps: ImportNarDeps,
  { narinfo, nar }: SourceEntry,
  signal: AbortSignal,
): Promise<ImportedNar> {
  const linked = nar.kind === "file" && deps.handling !== "copy"
    ? await link(deps, narinfo, nar.path)
    : undefined;
  if (linked === undefined) return await copied(deps, { narinfo, nar }, signal);
  using file = linked;
  const { fileHash, fileSize } = await file.measured();
  using measure = new FileMeasure(deps.verifier, toMeasure(narinfo, file.path, fileSize));
  const measured = await measure.end({ fileHash, fileSize });
  return await keep(deps, narinfo, { file, measured: { ...measured, fileHash, fileSize } });
}

/** `undefined` where only a copy can move the file. */
async function link(
  { space, folder, handling }: ImportNarDeps,
  narinfo: Narinfo,
  from: string,
): Promise<LinkedFile | undefined> {
  const { size } = await Deno.stat(from).catch((error) => {
    throw unreadable(from, error);
  });
  const reservation = await space.reserve(size);
  if (reservation === undefined) throw new UploadRefused("no-room", "expected room");
  const { narHash, compression } = narinfo;
  const path = `${folder}/${narName(narHash, compression)}.${dice.uuid()}.part`;
  try {
    return new LinkedFile({ from, path, space, reservation });
  } catch (error) {
    reservation[Symbol.dispose]();
    const isOtherFileSystem = error instanceof Error && "code" in error && error.code === "EXDEV";
    if (handling === "move" && isOtherFileSystem) return undefined;
    throw new CannotLink(from, reasonOf(error), error);
  }
}

/** The file system refuses links: it refuses them for every file. */
export class CannotLink extends Failure {
  constructor(from: string, reason: string, cause: unknown) {
    super("broken", `Cannot link ${from}: ${reason}; import with --copy`, {}, cause);
  }
}

async function copied(
  deps: ImportNarDeps,
  { narinfo, nar }: Pick<SourceEntry, "narinfo" | "nar">,
  signal: AbortSignal,
): Promise<ImportedNar> {
  const { space, folder, verifier } = deps;
  const { stream, fileSize: length } = await opened(nar, signal);
  const name = narRowOf(narinfo).name;
  try {
    using file = await SpoolFile.open({ narName: name, folder, space, length });
    using measure = new FileMeasure(verifier, toMeasure(narinfo, file.path, length));
    for await (const piece of stream) {
      signal.throwIfAborted();
      await file.write(piece);
      measure.grown(file.fileSize);
    }
    file.close();
    const { fileHash, fileSize } = file;
    const measured = await measure.end({ fileHash, fileSize });
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
  { publishing }: ImportNarDeps,
  narinfo: Narinfo,
  { file, measured }: MeasuredImport,
): Promise<ImportedNar> {
  checkNarFacts(narinfo, measured);
  const { path, ledgerBytes } = file;
  const name = await stageNar(publishing, { ...measured, path, ledgerBytes });
  await file.kept();
  return { name, fileSize: measured.fileSize };
}

interface OpenedNar {
  readonly stream: ReadableStream<Bytes>;
  readonly fileSize: number | undefined;
}

async function opened(nar: SourceNar, signal: AbortSignal): Promise<OpenedNar> {
  if (nar.kind === "stream") return { stream: await nar.open(signal), fileSize: nar.fileSize };
  try {
    const { size } = await Deno.stat(nar.path);
    return { stream: streamOf(piecesOf(nar.path)), fileSize: size };
  } catch (error) {
    throw unreadable(nar.path, error);
  }
}

async function* piecesOf(path: string): AsyncGenerator<Bytes> {
  using file = await Deno.open(path);
  for (;;) {
    const bytes = new Uint8Array(READ_BYTES);
    const got = await file.read(bytes);
    if (got === null) return;
    yield bytes.subarray(0, got);
  }
}

function unreadable(path: string, error: unknown): Failure {
  return new Failure("absent", `Cannot read NAR file ${path}: ${reasonOf(error)}`, {}, error);
}
