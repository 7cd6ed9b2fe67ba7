import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import { checkNar, Mismatch } from "./check_nar.ts";
import type { NarVerifier, PassThroughVerification } from "./nar_verifier.ts";

/** Maximum wait for memory: beyond it a client is better off with its next substituter. */
const MEMORY_WAIT_MS = 5_000;

/** A verifier that lags further is abandoned: the client has its bytes by the file hash. */
const BEHIND_BYTES_MAX = 16 << 20;

/** The check of a pass-through's bytes against the NAR hash. */
export interface PassThroughCheck extends Disposable {
  /** Throws a Failure "unavailable" where the decoder gets no memory that the client waits for. */
  write(bytes: Bytes): Promise<void>;
  /** The file is complete. Throws a Mismatch while it can still fail the answer to the client. */
  end(): Promise<void>;
}

export interface PassThroughCheckParts {
  readonly nar: NarRow;
  readonly verifier: Pick<NarVerifier, "passThrough">;
  /** Called when the client has the whole file: its file hash is right, its NAR hash is not. */
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

/** Check without a file hash: the client waits for the NAR hash, and each write for the decoder. */
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
 * The unsigned file hash releases the client's bytes early. The check of the NAR hash runs beside
 * it, to detect an upstream that announced a false file hash.
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
