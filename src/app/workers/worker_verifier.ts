import type { Bytes } from "../../base/bytes.ts";
import { MemoryAllowance } from "../../base/memory_allowance.ts";
import type {
  BodyOrder,
  DecodedBody,
  NarTaker,
  NarVerifier,
  PassThroughOrder,
  PassThroughVerification,
  Verification,
  VerifyOrder,
} from "../../cache/verify/nar_verifier.ts";
import type { Threads } from "../../runtime/threads.ts";
import { VerifyThread } from "./verify_thread.ts";

/**
 * Memory for decoders of growing files, which a slow upstream may hold for long. Other files wait
 * until they are whole.
 */
const GROWING_BYTES_MAX = 256 << 20;

/** A NarVerifier of several threads. A NAR goes to the one with the fewest bytes before it. */
export class WorkerVerifier implements NarVerifier, Disposable {
  readonly #threads: readonly VerifyThread[];

  /** Throws without a thread. */
  constructor(threads: Threads, threadsCount: number) {
    if (!(threadsCount >= 1)) throw new RangeError(`Cannot verify with ${threadsCount} threads`);
    const growingFiles = new MemoryAllowance(GROWING_BYTES_MAX);
    this.#threads = Array.from(
      { length: threadsCount },
      () => new VerifyThread(threads, growingFiles),
    );
  }

  start(order: VerifyOrder): Verification {
    return this.#idlest().start(order);
  }

  passThrough(order: PassThroughOrder, taker?: NarTaker): PassThroughVerification {
    return this.#idlest().passThrough(order, taker);
  }

  decode(bytes: Bytes, order: BodyOrder, signal?: AbortSignal): Promise<DecodedBody> {
    return this.#idlest().decode(bytes, order, signal);
  }

  /** Starts one thread ahead of its first NAR; the others start when NARs wait. */
  prepare(): void {
    this.#threads[0]?.prepare();
  }

  [Symbol.dispose](): void {
    for (const thread of this.#threads) thread[Symbol.dispose]();
  }

  /** The first of equal ones, so that a quiet cache runs one thread. */
  #idlest(): VerifyThread {
    return this.#threads.reduce((best, one) => one.narBytes < best.narBytes ? one : best);
  }
}
