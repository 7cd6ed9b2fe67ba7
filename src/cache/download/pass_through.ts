import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { Failure } from "../../base/failure.ts";
import type { MemoryAllowance, MemoryShare } from "../../base/memory_allowance.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import { measureBytes } from "../verify/measure_nar.ts";
import type { NarMeasure } from "../verify/nar_verifier.ts";
import { checkFile, checkNar } from "./check_nar.ts";
import { Mismatch } from "./mismatch.ts";

/** Which part of a file somebody wants, and what they have of it. */
export interface PassedPart {
  readonly start: number;
  /** `undefined` is the file's end. */
  readonly end: number | undefined;
  /** What they have up to `start`; the new bytes must be the same. */
  readonly sent?: {
    /** The first byte that they have. */
    readonly from: number;
    at(position: number, length: number): Uint8Array;
  };
}

/** A NAR file that comes in, and what is known of it. */
export interface PassedFile {
  readonly pieces: AsyncIterable<Uint8Array<ArrayBuffer>>;
  readonly nar: NarRow;
  /** Others take of it too; whoever gets none in time is refused. */
  readonly decoderMemory: MemoryAllowance;
}

/** A client that waits for longer does better at its next substituter. */
const MEMORY_WAIT_MS = 5_000;

/**
 * Hands on a part of a NAR file that is not kept. The whole file is hashed on the way, and what
 * was wanted of its last piece is held back until the verdict: a wrong file throws a Mismatch.
 */
export async function* passThrough(
  { pieces, nar, decoderMemory }: PassedFile,
  part: PassedPart,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const hash = createHash("sha256");
  using memory = decoderMemory.share();
  const measure = measureFor(nar, memory);
  let position = 0;
  let held: Uint8Array<ArrayBuffer> | undefined;
  try {
    for await (const piece of pieces) {
      hash.update(piece);
      await measure?.write(piece);
      const wanted = wantedOf(piece, position, part);
      position += piece.length;
      if (wanted === undefined) continue;
      if (held !== undefined) yield held;
      held = wanted;
    }
    await check(nar, { fileSize: position, digest: hash.digest() }, measure);
    if (held !== undefined) yield held;
  } finally {
    await measure?.close();
  }
}

/** `undefined` where nothing of the piece is wanted. Throws where it is not what was sent. */
function wantedOf(
  piece: Uint8Array<ArrayBuffer>,
  position: number,
  { start, end = Infinity, sent }: PassedPart,
): Uint8Array<ArrayBuffer> | undefined {
  const before = piece.subarray(0, Math.max(0, start - position));
  const had = before.subarray(Math.max(0, (sent?.from ?? start) - position));
  if (sent !== undefined && had.length > 0) {
    const known = sent.at(position + before.length - had.length, had.length);
    if (Buffer.compare(had, known) !== 0) {
      throw new Mismatch("file_hash", "it is not the file that was begun");
    }
  }
  const wanted = piece.subarray(before.length, Math.max(before.length, end - position));
  return wanted.length > 0 ? wanted : undefined;
}

/** Decompresses and hashes beside the passing, where only the NAR hash can tell. */
function measureFor({ name, fileHash, compression, narSize }: NarRow, memory: MemoryShare) {
  if (fileHash !== undefined || compression === "none") return undefined;
  const { readable, writable } = new TransformStream<
    Uint8Array<ArrayBuffer>,
    Uint8Array<ArrayBuffer>
  >();
  const writer = writable.getWriter();
  let refusal: Failure | undefined;
  const claim = async (bytes: number) => {
    if (await memory.takeWithin(bytes, MEMORY_WAIT_MS)) return;
    const message = "Cannot pass NAR on: decoders take all memory that is set aside";
    throw refusal = new Failure("unavailable", message, { nar: name });
  };
  const result = measureBytes(readable, { compression, narSizeMax: narSize }, claim);
  // A decoder that has given up reads no more.
  const end = () => void writer.abort().catch(() => undefined);
  result.then(end, end);
  return {
    async write(piece: Uint8Array<ArrayBuffer>): Promise<void> {
      await writer.write(piece).catch(() => undefined);
      if (refusal !== undefined) throw refusal;
    },
    async result(): Promise<NarMeasure> {
      writer.close().catch(() => undefined);
      return await result;
    },
    async close(): Promise<void> {
      await writer.abort().catch(() => undefined);
      await result.catch(() => undefined);
    },
  };
}

/** A file hash decides alone: what it names was signed, or nothing is known of the NAR. */
async function check(
  nar: NarRow,
  { fileSize, digest }: { readonly fileSize: number; readonly digest: Uint8Array },
  measure: ReturnType<typeof measureFor>,
): Promise<void> {
  checkFile(nar, { fileSize, fileHash: sha256FromDigest(digest) });
  if (nar.fileHash !== undefined) return;
  checkNar(
    nar,
    measure === undefined
      ? { kind: "measured", digest, narSize: fileSize }
      : await measure.result(),
  );
}
