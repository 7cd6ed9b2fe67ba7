import { Failure } from "../../base/failure.ts";
import type { PinFinder } from "../../metadata/metadata_store.ts";
import type { ClosureLister, ClosurePath, PinnedClosure } from "../../pins/pinned_closures.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { WORKER_THREADS } from "../../runtime/threads.ts";
import { JobWorker } from "./job_worker.ts";
import type { ClosuresJob, FromClosuresWorker } from "./messages.ts";

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
    if ((await this.#deps.metadata.pins()).length === 0) return [];
    const answer = await this.#ask({}, signal);
    return "closures" in answer ? answer.closures : [];
  }

  async paths(root: StorePathHash, signal?: AbortSignal): Promise<readonly ClosurePath[]> {
    const answer = await this.#ask({ root }, signal);
    return "paths" in answer ? answer.paths : [];
  }

  async #ask(
    job: Pick<ClosuresJob, "root">,
    signal: AbortSignal | undefined,
  ): Promise<Exclude<FromClosuresWorker, { error: string }>> {
    const { databasePath } = this.#deps;
    signal?.throwIfAborted();
    // A Worker for each count: between two it would hold its memory for nothing.
    using worker = new JobWorker<ClosuresJob, FromClosuresWorker>({
      threads: WORKER_THREADS,
      url: new URL("./closures_worker.ts", import.meta.url),
      died: (id, error) => ({ id, error, isOverloaded: false }),
    });
    const end = () => worker[Symbol.dispose]();
    signal?.addEventListener("abort", end, { once: true });
    const answer = await worker.ask((id) => ({ id, databasePath, ...job }));
    signal?.removeEventListener("abort", end);
    signal?.throwIfAborted();
    if (!("error" in answer)) return answer;
    const kind = answer.isOverloaded ? "overloaded" : "broken";
    throw new Failure(kind, `Cannot count closures: ${answer.error}`);
  }
}
