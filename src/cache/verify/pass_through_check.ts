import { Failure, messageOf } from "../../base/failure.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import { checkNar, Mismatch } from "./check_nar.ts";
import type { NarVerifier, PassThroughVerification } from "./nar_verifier.ts";

/** A client that waits for longer does better at its next substituter. */
const MEMORY_WAIT_MS = 5_000;

/** A verifier that is so far behind is left: no client waits for what its file hash has told. */
const BEHIND_BYTES_MAX = 16 << 20;

/** The check of a NAR hash against the bytes of a pass-through. */
export interface PassThroughCheck extends Disposable {
  /** Throws a Failure "unavailable" where the decoder that the client waits for has no memory. */
  write(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** All bytes were written. Throws a Mismatch where the client can still be told. */
  end(): Promise<void>;
}

export interface PassThroughCheckParts {
  readonly nar: NarRow;
  readonly verifier: Pick<NarVerifier, "passThrough">;
  /** Called where the client has a whole file by then: its file hash is right, its NAR is not. */
  readonly wrong: (mismatch: Mismatch) => void;
}

/** `undefined` where the file is the NAR. */
export function passThroughCheck(parts: PassThroughCheckParts): PassThroughCheck | undefined {
  const { nar, verifier, wrong } = parts;
  const { compression, narSize: narSizeMax, fileHash } = nar;
  if (compression === "none") return undefined;
  const memoryWaitMs = fileHash === undefined ? MEMORY_WAIT_MS : 0;
  const verification = verifier.passThrough({ compression, narSizeMax, memoryWaitMs });
  return fileHash === undefined
    ? checkBefore(nar, verification)
    : checkBeside(nar, verification, wrong);
}

/** Only the NAR hash can tell: the client waits for it, and so does the next piece. */
function checkBefore(nar: NarRow, verification: PassThroughVerification): PassThroughCheck {
  let refusal: unknown;
  verification.measure.catch((error) => refusal = error);
  return {
    async write(bytes) {
      await verification.write(bytes);
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
  verification: PassThroughVerification,
  wrong: PassThroughCheckParts["wrong"],
): PassThroughCheck {
  let [behindBytes, isWhole] = [0, false];
  return {
    async write(bytes) {
      behindBytes += bytes.length;
      verification.write(bytes).then(() => behindBytes -= bytes.length);
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
  const message = `Cannot pass NAR through: ${messageOf(cause)}`;
  return new Failure("unavailable", message, { nar: name }, cause);
}
