import pLimit from "p-limit";
import { Failure } from "../../base/failure.ts";
import type { MemoryAllowance } from "../../base/memory_allowance.ts";
import { decoderBytesMax, type Decoding } from "../../cache/verify/decoder_bytes.ts";
import type {
  NarMeasure,
  NarVerifier,
  PassThroughOrder,
  PassThroughVerification,
  Verification,
  VerifyOrder,
} from "../../cache/verify/nar_verifier.ts";
import type { Threads } from "../../runtime/threads.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromVerifyWorker, ToVerifyWorker } from "./messages.ts";

/**
 * Whole files that one thread decompresses at once. More would not be faster, and each decoder
 * takes up to 129 MiB.
 */
const WHOLE_FILES_MAX = 2;

/** Smaller NARs have a queue of their own, and so pass large ones that wait. */
const SMALL_NAR_BYTES_MAX = 16 << 20;

/** Decoders take bytes from anywhere: they read files, and reach nothing else. */
export const FILES_ALONE: Deno.PermissionOptionsObject = {
  read: "inherit",
  write: false,
  net: false,
  env: false,
  sys: false,
  run: false,
  ffi: false,
};

/** A NarVerifier that runs in one Worker. */
export class VerifyThread implements NarVerifier, Disposable {
  readonly #worker: JobWorker<ToVerifyWorker, FromVerifyWorker>;
  readonly #largeFiles = pLimit(WHOLE_FILES_MAX);
  readonly #smallFiles = pLimit(WHOLE_FILES_MAX);
  readonly #growingFiles: MemoryAllowance;
  #narBytes = 0;

  /** `growingFiles`: memory for decoders of growing files. */
  constructor(threads: Threads, growingFiles: MemoryAllowance) {
    this.#worker = new JobWorker<ToVerifyWorker, FromVerifyWorker>({
      threads,
      url: new URL("./verify_worker.ts", import.meta.url),
      permissions: FILES_ALONE,
      died: (id, error) => ({ id, error }),
    });
    this.#growingFiles = growingFiles;
  }

  /** The sizes of all NARs that this thread verifies, or that wait for it. */
  get narBytes(): number {
    return this.#narBytes;
  }

  start(order: VerifyOrder): Verification {
    const worker = this.#worker;
    const wholeFiles = order.narSizeMax > SMALL_NAR_BYTES_MAX ? this.#largeFiles : this.#smallFiles;
    const { promise, resolve, reject } = Promise.withResolvers<NarMeasure>();
    // The caller does not use the outcome of a verification that it ends early.
    const memory = this.#growingFiles.share();
    promise.catch(() => undefined).finally(() => memory[Symbol.dispose]());
    this.#count(order, promise);
    let over = false;
    const id = worker.open((answer) => {
      over = true;
      worker.forget(id);
      if ("measure" in answer) resolve(answer.measure);
      else if ("error" in answer) {
        reject(new Failure("broken", `Cannot verify NAR: ${answer.error}`));
      }
    });
    let begun = false;
    const begin = () => {
      if (!begun && !over) worker.send({ type: "verify", id, order });
      begun = true;
    };
    const grown = (fileSize: number, whole: boolean) => {
      begin();
      if (!over) worker.send({ type: "grown", id, fileSize, whole });
    };
    return {
      measure: promise,
      grown: (fileSize, whole) => {
        // A file whose decoding began while it grew needs no turn.
        if (begun) return grown(fileSize, whole);
        // It has no decoder, so it takes no memory, and a client may wait for its hash.
        if (whole && order.compression === "none") return grown(fileSize, true);
        if (!whole) return void (memory.take(decoderBytesMax(order)) && grown(fileSize, false));
        wholeFiles(() => {
          grown(fileSize, true);
          return promise.catch(() => undefined);
        });
      },
      [Symbol.dispose]: () => {
        if (!over && begun) worker.send({ type: "cancel", id });
        if (!over && !begun) {
          over = true;
          worker.forget(id);
          reject(new Failure("broken", "Cannot verify NAR: it was ended before it began"));
        }
      },
    };
  }

  passThrough(order: PassThroughOrder): PassThroughVerification {
    const worker = this.#worker;
    const { promise, resolve, reject } = Promise.withResolvers<NarMeasure>();
    this.#count(order, promise);
    /** Callbacks of the pieces in the Worker, in order. */
    const taken: (() => void)[] = [];
    let over = false;
    const end = (settle: () => void) => {
      over = true;
      worker.forget(id);
      settle();
      for (const resolveTaken of taken.splice(0)) resolveTaken();
    };
    const id = worker.open((answer) => {
      if ("taken" in answer) return taken.shift()?.();
      if ("measure" in answer) return end(() => resolve(answer.measure));
      const kind = answer.isRefused ? "unavailable" : "broken";
      end(() => reject(new Failure(kind, `Cannot verify NAR: ${answer.error}`)));
    });
    worker.send({ type: "passThrough", id, order });
    return {
      measure: promise,
      write: (bytes) => {
        if (over) return Promise.resolve();
        const { promise: decoded, resolve: resolveTaken } = Promise.withResolvers<void>();
        taken.push(resolveTaken);
        worker.send({ type: "piece", id, bytes });
        return decoded;
      },
      end: () => void (over || worker.send({ type: "end", id })),
      [Symbol.dispose]: () => {
        if (over) return;
        worker.send({ type: "cancel", id });
        end(() => reject(new Failure("broken", "Cannot verify NAR: it was ended early")));
      },
    };
  }

  /** Starts the Worker ahead of its first NAR. */
  prepare(): void {
    this.#worker.prepare();
  }

  [Symbol.dispose](): void {
    this.#worker[Symbol.dispose]();
  }

  #count({ narSizeMax }: Decoding, measure: Promise<NarMeasure>): void {
    this.#narBytes += narSizeMax;
    measure.catch(() => undefined).finally(() => this.#narBytes -= narSizeMax);
  }
}
