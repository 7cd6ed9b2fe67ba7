import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { Failure, messageOf } from "../../base/failure.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import type { NarVerifier, PassedVerification } from "../verify/nar_verifier.ts";
import { checkFile, checkNar } from "../verify/check_nar.ts";
import { Mismatch } from "../verify/mismatch.ts";
import type { PassedPart } from "../download/download.ts";

/** A NAR file that comes in, and what is known of it. */
export interface PassedFile {
  readonly pieces: AsyncIterable<Uint8Array<ArrayBuffer>>;
  readonly nar: NarRow;
  readonly verifier: Pick<NarVerifier, "pass">;
  /** Told where the client has a file by then whose file hash is right, and whose NAR is wrong. */
  readonly wrong: (mismatch: Mismatch) => void;
}

/** A client that waits for longer does better at its next substituter. */
const MEMORY_WAIT_MS = 5_000;

/** A verifier that is so far behind is left: no client waits for what its file hash has told. */
const BEHIND_BYTES_MAX = 16 << 20;

/**
 * Hands on a part of a NAR file that is not kept. The whole file is hashed on the way, and what
 * was wanted of its last piece is held back until the verdict: a wrong file throws a Mismatch.
 */
export async function* passThrough(
  file: PassedFile,
  part: PassedPart,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { pieces, nar } = file;
  const hash = createHash("sha256");
  using check = checkFor(file);
  let position = 0;
  let held: Uint8Array<ArrayBuffer> | undefined;
  for await (const piece of pieces) {
    hash.update(piece);
    await check?.write(piece);
    const wanted = wantedOf(piece, position, part);
    position += piece.length;
    if (wanted === undefined) continue;
    if (held !== undefined) yield held;
    held = wanted;
  }
  const digest = hash.digest();
  checkFile(nar, { fileSize: position, fileHash: sha256FromDigest(digest) });
  if (check !== undefined) await check.end();
  else checkNar(nar, { kind: "measured", digest, narSize: position });
  if (held !== undefined) yield held;
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

/** What holds the NAR hash against the bytes on their way. */
interface NarCheck extends Disposable {
  write(piece: Uint8Array<ArrayBuffer>): Promise<void>;
  /** All bytes were written. Throws a Mismatch where the client can still be told. */
  end(): Promise<void>;
}

/** `undefined` where the file is the NAR. */
function checkFor({ nar, verifier, wrong }: PassedFile): NarCheck | undefined {
  const { compression, narSize: narSizeMax, fileHash } = nar;
  if (compression === "none") return undefined;
  const memoryWaitMs = fileHash === undefined ? MEMORY_WAIT_MS : 0;
  const verification = verifier.pass({ compression, narSizeMax, memoryWaitMs });
  return fileHash === undefined
    ? checkBefore(nar, verification)
    : checkBeside(nar, verification, wrong);
}

/** Only the NAR hash can tell: the client waits for it, and so does the next piece. */
function checkBefore(nar: NarRow, verification: PassedVerification): NarCheck {
  let refusal: unknown;
  verification.measure.catch((error) => refusal = error);
  return {
    async write(piece) {
      await verification.write(piece);
      if (refusal !== undefined) throw refused(nar, refusal);
    },
    async end() {
      verification.end();
      const measure = await verification.measure.catch((error) => {
        throw refused(nar, error);
      });
      checkNar(nar, measure);
    },
    [Symbol.dispose]: () => verification[Symbol.dispose](),
  };
}

/**
 * The file hash, which nobody signs, tells the client soon. The NAR hash is checked beside that,
 * so that an upstream whose claim of the file hash was false is found out.
 */
function checkBeside(
  nar: NarRow,
  verification: PassedVerification,
  wrong: PassedFile["wrong"],
): NarCheck {
  let [behindBytes, isWhole] = [0, false];
  return {
    async write(piece) {
      behindBytes += piece.length;
      verification.write(piece).then(() => behindBytes -= piece.length);
      if (behindBytes > BEHIND_BYTES_MAX) verification[Symbol.dispose]();
    },
    async end() {
      isWhole = true;
      verification.end();
      verification.measure.then((measure) => checkNar(nar, measure)).catch((error) => {
        if (error instanceof Mismatch) wrong(error);
      });
    },
    [Symbol.dispose]: () => isWhole || verification[Symbol.dispose](),
  };
}

function refused({ name }: NarRow, cause: unknown): Failure {
  return new Failure(
    "unavailable",
    `Cannot pass NAR on: ${messageOf(cause)}`,
    { nar: name },
    cause,
  );
}
