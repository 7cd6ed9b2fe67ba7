import pLimit from "p-limit";
import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import type { MemoryAllowance } from "../../base/memory_allowance.ts";
import { decoderBytesMax } from "../../cache/verify/decoder_bytes.ts";
import { MeasureTurns } from "../../cache/verify/measure_turns.ts";
import type {
  BodyOrder,
  ClientTurns,
  DecodedBody,
  NarCount,
  NarMeasure,
  NarTaker,
  NarVerifier,
  PassThroughOrder,
  PassThroughVerification,
  Verification,
  VerifyOrder,
} from "../../cache/verify/nar_verifier.ts";
import type { Threads } from "../../runtime/threads.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromVerifyWorker, ToVerifyWorker } from "./messages.ts";
import type { Pause } from "../../cache/verify/pace.ts";
import { clock } from "../../runtime/current.ts";

/**
 * Whole files that one thread decompresses at once. More would not be faster, and each decoder
 * takes up to 129 MiB.
 */
const WHOLE_FILES_MAX = 2;

/** Smaller NARs have a queue of their own, and so pass large ones that wait. */
const SMALL_NAR_BYTES_MAX = 16 << 20;

/** Memory of all decoders that take turns. The largest one takes 129 MiB. */
const TURNS_BYTES_MAX = 192 << 20;

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
  readonly #turns = new MeasureTurns({
    memoryBytes: TURNS_BYTES_MAX,
    nowMs: () => clock.nowMs(),
  });
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
    return order.turns === undefined
      ? this.#startAtOnce(order)
      : this.#startInTurns(order, order.turns);
  }

  async decode(bytes: Bytes, order: BodyOrder, signal?: AbortSignal): Promise<DecodedBody> {
    const { promise, resolve, reject } = Promise.withResolvers<DecodedBody>();
    this.#count(order.bytesMax, promise);
    using job = this.#enter(order.turns, {
      begin: (id) => this.#worker.send({ type: "decode", id, order, bytes }),
      goOn: (id) => this.#worker.send({ type: "goOn", id }),
      starved: () => undefined,
      ended: (answer) => {
        if (answer !== "given up" && "body" in answer) resolve(answer.body);
        else reject(failureOf(answer));
      },
    });
    job.wants();
    try {
      return await (signal === undefined ? promise : unlessAborted(promise, signal));
    } catch (error) {
      reject(error);
      throw error;
    }
  }

  #startAtOnce(order: VerifyOrder): Verification {
    const worker = this.#worker;
    const wholeFiles = order.narSizeMax > SMALL_NAR_BYTES_MAX ? this.#largeFiles : this.#smallFiles;
    const { promise, resolve, reject } = Promise.withResolvers<NarMeasure>();
    // The caller does not use the outcome of a verification that it ends early.
    const memory = this.#growingFiles.share();
    promise.catch(() => undefined).finally(() => memory[Symbol.dispose]());
    this.#count(order.narSizeMax, promise);
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
    const grown = (fileSize: number, whole: boolean) => {
      const growth = { id, fileSize, whole };
      if (!over) {
        worker.send(begun ? { type: "grown", ...growth } : { type: "verify", order, ...growth });
      }
      begun = true;
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

  #startInTurns(order: VerifyOrder, turns: ClientTurns): Verification {
    const worker = this.#worker;
    const { promise, resolve, reject } = Promise.withResolvers<NarMeasure>();
    this.#count(order.narSizeMax, promise);
    let growth = { fileSize: 0, whole: false };
    let sent = growth;
    let isStarved = true;
    /** True: its decoder's memory went to another file while this one grew. */
    let waitsForWhole = false;
    const send = (id: number, type: "begin" | "goOn") => {
      sent = growth;
      if (type === "begin") return worker.send({ type: "verify", id, order, ...growth });
      worker.send({ type: "grown", id, ...growth });
      worker.send({ type: "goOn", id });
    };
    const enter = () =>
      this.#enter(turns, {
        begin: (id) => send(id, "begin"),
        goOn: (id) => send(id, "goOn"),
        starved: () => {
          isStarved = true;
          wake();
        },
        ended: (answer) => {
          if (answer === "given up" && !growth.whole) {
            [isStarved, waitsForWhole] = [true, true];
            sent = growth;
            job = enter();
          } else if (answer !== "given up" && "measure" in answer) resolve(answer.measure);
          else reject(failureOf(answer));
        },
      });
    const wake = () => {
      if (!isStarved || growth === sent || (waitsForWhole && !growth.whole)) return;
      isStarved = false;
      job.wants();
    };
    let job = enter();
    return {
      measure: promise,
      grown: (fileSize, whole) => {
        growth = { fileSize, whole };
        wake();
      },
      [Symbol.dispose]: () => {
        job[Symbol.dispose]();
        reject(new Failure("broken", "Cannot verify NAR: it was ended early"));
      },
    };
  }

  passThrough(order: PassThroughOrder, taker?: NarTaker): PassThroughVerification {
    const worker = this.#worker;
    const { promise, resolve, reject } = Promise.withResolvers<NarMeasure | NarCount>();
    this.#count(order.narSizeMax, promise);
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
      if ("narPiece" in answer) {
        const { buffer: spare } = answer.narPiece;
        return void taker?.(answer.narPiece).then(() => {
          if (!over) worker.send({ type: "goOn", id, spare }, [spare]);
        });
      }
      if ("passed" in answer) return end(() => resolve(answer.passed));
      if (!("error" in answer)) return;
      const kind = answer.isRefused ? "unavailable" : "broken";
      end(() => reject(new Failure(kind, `Cannot verify NAR: ${answer.error}`)));
    });
    worker.send({ type: "passThrough", id, order, givesNar: taker !== undefined });
    return {
      measure: promise,
      write: (bytes, isOwned = false) => {
        if (over) return Promise.resolve();
        const { promise: decoded, resolve: resolveTaken } = Promise.withResolvers<void>();
        taken.push(resolveTaken);
        worker.send({ type: "piece", id, bytes }, isOwned ? [bytes.buffer] : undefined);
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

  #count(bytes: number, work: Promise<unknown>): void {
    this.#narBytes += bytes;
    work.catch(() => undefined).finally(() => this.#narBytes -= bytes);
  }

  /** A job of the Worker that runs in turns. Disposing of it ends it, without `ended`. */
  #enter({ client, budgetMs }: ClientTurns, job: JobInTurns): Disposable & { wants(): void } {
    const worker = this.#worker;
    let id: number | undefined;
    let over = false;
    const end = () => {
      over = true;
      if (id !== undefined) worker.forget(id);
      turn[Symbol.dispose]();
    };
    const cancel = () => {
      if (over) return;
      if (id !== undefined) worker.send({ type: "cancel", id });
      end();
    };
    const answered = (answer: FromVerifyWorker) => {
      if ("taken" in answer || over) return;
      if (!("pause" in answer)) {
        end();
        return job.ended(answer);
      }
      const { needs } = answer.pause;
      turn.paused(answer.pause, needs === "input" ? undefined : needs.memoryBytes);
      if (needs === "input") job.starved();
    };
    const turn = this.#turns.enter({
      ...{ client, budgetMs },
      run: () => {
        if (id !== undefined) return job.goOn(id);
        id = worker.open(answered);
        job.begin(id);
      },
      giveUp: () => {
        cancel();
        job.ended("given up");
      },
    });
    return { wants: () => turn.wants(), [Symbol.dispose]: cancel };
  }
}

/** What the Worker is told about a job in turns, and what it says. */
interface JobInTurns {
  begin(id: number): void;
  goOn(id: number): void;
  /** The Worker has no input. */
  starved(): void;
  ended(answer: Exclude<FromVerifyWorker, { taken: true } | { pause: Pause }> | "given up"): void;
}

function failureOf(answer: FromVerifyWorker | "given up"): Failure {
  if (answer === "given up") {
    return new Failure("overloaded", "Cannot decode: others needed its memory");
  }
  const detail = "error" in answer ? answer.error : "an answer of another kind";
  return new Failure("broken", `Cannot decode: ${detail}`);
}
