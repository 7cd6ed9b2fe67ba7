import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import type {
  Encoded,
  EncodeOrder,
  NarEncoder,
  NarEncoding,
} from "../../cache/recompress/nar_encoder.ts";
import { hasSystemPermission } from "../../runtime/system_permission.ts";
import type { Threads } from "../../runtime/threads.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromEncodeWorker, ToEncodeWorker } from "./messages.ts";
import { FILES_ALONE } from "./verify_thread.ts";

/** It lowers its own priority. */
const PRIORITY = "setPriority";

/** A NarEncoder in one Worker, which starts with the first NAR. */
export class WorkerEncoder implements NarEncoder, Disposable {
  readonly #worker: JobWorker<ToEncodeWorker, FromEncodeWorker>;

  constructor(threads: Threads) {
    this.#worker = new JobWorker<ToEncodeWorker, FromEncodeWorker>({
      threads,
      url: new URL("./encode_worker.ts", import.meta.url),
      // A Worker may ask for no more than its parent has.
      permissions: {
        ...FILES_ALONE,
        write: "inherit",
        sys: hasSystemPermission(PRIORITY) ? [PRIORITY] : false,
      },
      died: (id, error) => ({ id, error }),
    });
  }

  start(order: EncodeOrder, turn: () => Promise<void>): NarEncoding {
    const worker = this.#worker;
    const { promise, resolve, reject } = Promise.withResolvers<Encoded>();
    promise.catch(() => undefined);
    let taken: (() => void) | undefined;
    let isOver = false;
    const end = () => {
      isOver = true;
      worker.forget(id);
      taken?.();
    };
    const cancel = (error: unknown) => {
      if (isOver) return;
      worker.send({ type: "cancel", id });
      end();
      reject(error);
    };
    const go = () => void (isOver || worker.send({ type: "go", id }));
    const id = worker.open((answer) => {
      if ("taken" in answer) return taken?.();
      if ("waits" in answer) return void turn().then(go, cancel);
      end();
      if ("encoded" in answer) return resolve(answer.encoded);
      reject(new Failure("broken", `Cannot recompress NAR: ${answer.error}`));
    });
    worker.send({ type: "encode", id, order });
    return {
      encoded: promise,
      write(bytes: Bytes): Promise<void> {
        if (isOver) return Promise.resolve();
        const { promise: isTaken, resolve: resolveTaken } = Promise.withResolvers<void>();
        taken = resolveTaken;
        worker.send({ type: "piece", id, bytes });
        return isTaken;
      },
      end: () => void (isOver || worker.send({ type: "end", id })),
      [Symbol.dispose]: () =>
        cancel(new Failure("broken", "Cannot recompress NAR: it was ended early")),
    };
  }

  [Symbol.dispose](): void {
    this.#worker[Symbol.dispose]();
  }
}
