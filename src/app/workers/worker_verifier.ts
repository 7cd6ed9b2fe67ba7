import pLimit from "p-limit";
import { Failure } from "../../base/failure.ts";
import type {
  NarMeasure,
  NarVerifier,
  Verification,
  VerifyOrder,
} from "../../cache/verify/nar_verifier.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromVerifyWorker, ToVerifyWorker } from "./messages.ts";

/**
 * Whole files that are decompressed at the same time in one thread: more would not be faster,
 * and each decoder holds a window of up to 64 MiB.
 */
const WHOLE_FILES_MAX = 2;

/** Verifies in a Worker. */
export class WorkerVerifier implements NarVerifier, Disposable {
  readonly #worker = new JobWorker<ToVerifyWorker, FromVerifyWorker>({
    url: new URL("./verify_worker.ts", import.meta.url),
    died: (id, error) => ({ id, error }),
  });
  readonly #wholeFiles = pLimit(WHOLE_FILES_MAX);

  start(order: VerifyOrder): Verification {
    const worker = this.#worker;
    const { promise, resolve, reject } = Promise.withResolvers<NarMeasure>();
    // Whoever ends a verification early does not look at its outcome.
    promise.catch(() => undefined);
    let over = false;
    const id = worker.open((answer) => {
      over = true;
      worker.forget(id);
      if ("measure" in answer) resolve(answer.measure);
      else reject(new Failure("broken", `Cannot verify NAR: ${answer.error}`));
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
        // One that has begun while its file came in has its turn already.
        if (begun || !whole) return grown(fileSize, whole);
        this.#wholeFiles(() => {
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

  [Symbol.dispose](): void {
    this.#worker[Symbol.dispose]();
  }
}
