import { Failure } from "../../base/failure.ts";
import type { PinFinder } from "../../metadata/metadata_store.ts";
import type { ClosureLister, PinnedClosure } from "../../pins/pinned_closures.ts";
import { WORKER_THREADS } from "../../runtime/threads.ts";
import { JobWorker } from "./job_worker.ts";
import type { DatabaseJob, FromClosuresWorker } from "./messages.ts";

export interface WorkerClosuresDeps {
  readonly metadata: PinFinder;
  readonly databasePath: string;
}

/** Counts pinned closures in a Worker, as large ones take seconds. */
export class WorkerClosures implements ClosureLister {
  readonly #deps: WorkerClosuresDeps;

  constructor(deps: WorkerClosuresDeps) {
    this.#deps = deps;
  }

  async list(signal?: AbortSignal): Promise<readonly PinnedClosure[]> {
    const { metadata, databasePath } = this.#deps;
    if ((await metadata.pins()).length === 0) return [];
    signal?.throwIfAborted();
    // A Worker for each count: between two it would hold its memory for nothing.
    using worker = new JobWorker<DatabaseJob, FromClosuresWorker>({
      threads: WORKER_THREADS,
      url: new URL("./closures_worker.ts", import.meta.url),
      died: (id, error) => ({ id, error, isOverloaded: false }),
    });
    const end = () => worker[Symbol.dispose]();
    signal?.addEventListener("abort", end, { once: true });
    const answer = await worker.ask((id) => ({ id, databasePath }));
    signal?.removeEventListener("abort", end);
    signal?.throwIfAborted();
    if ("closures" in answer) return answer.closures;
    const kind = answer.isOverloaded ? "overloaded" : "broken";
    throw new Failure(kind, `Cannot count closures: ${answer.error}`);
  }
}
