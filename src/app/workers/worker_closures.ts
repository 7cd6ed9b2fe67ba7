import { Failure } from "../../base/failure.ts";
import { SingleFlight } from "../../base/single_flight.ts";
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
  readonly #flights = new SingleFlight<"list", readonly PinnedClosure[]>();
  #worker: Disposable | undefined;
  #stopped = false;

  constructor(deps: WorkerClosuresDeps) {
    this.#deps = deps;
  }

  list(): Promise<readonly PinnedClosure[]> {
    return this.#flights.run("list", () => this.#count()).value;
  }

  /** Rejects a running count. */
  [Symbol.dispose](): void {
    this.#stopped = true;
    this.#worker?.[Symbol.dispose]();
  }

  async #count(): Promise<readonly PinnedClosure[]> {
    const { metadata, databasePath } = this.#deps;
    if ((await metadata.pins()).length === 0) return [];
    if (this.#stopped) throw stopped();
    // A Worker for each count: between two it would hold its memory for nothing.
    using worker = new JobWorker<DatabaseJob, FromClosuresWorker>({
      threads: WORKER_THREADS,
      url: new URL("./closures_worker.ts", import.meta.url),
      died: (id, error) => ({ id, error, isOverloaded: false }),
    });
    this.#worker = worker;
    const answer = await worker.ask((id) => ({ id, databasePath }));
    if ("closures" in answer) return answer.closures;
    const kind = answer.isOverloaded ? "overloaded" : "broken";
    throw new Failure(kind, `Cannot count closures: ${answer.error}`);
  }
}

function stopped(): Failure {
  return new Failure("broken", "Cannot count closures: the server is stopping");
}
