import type { FetchEvent, FetchOrder, NarFetcher } from "../../cache/download/nar_fetcher.ts";
import type { CaCertificates, HttpUpstreamSettings } from "../../upstream/http/http_settings.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromFetchWorker, ToFetchWorker } from "./messages.ts";

export interface WorkerFetcherDeps {
  readonly upstreams: readonly HttpUpstreamSettings[];
  readonly caCertificates: CaCertificates;
}

/** Fetches in a Worker. */
export class WorkerFetcher implements NarFetcher, Disposable {
  readonly #worker: JobWorker<ToFetchWorker, FromFetchWorker>;

  constructor({ upstreams, caCertificates }: WorkerFetcherDeps) {
    this.#worker = new JobWorker<ToFetchWorker, FromFetchWorker>({
      url: new URL("./fetch_worker.ts", import.meta.url),
      start: { type: "start", upstreams, caCertificates } satisfies ToFetchWorker,
      died: (id, detail) => ({ id, event: { type: "failed", reason: "cancelled", detail } }),
    });
  }

  fetch(order: FetchOrder, tell: (event: FetchEvent) => void): Disposable {
    const id = this.#worker.open(({ event }) => {
      if (event.type !== "opened" && event.type !== "bytes") this.#worker.forget(id);
      tell(event);
    });
    this.#worker.send({ type: "fetch", id, order });
    return { [Symbol.dispose]: () => this.#worker.send({ type: "cancel", id }) };
  }

  [Symbol.dispose](): void {
    this.#worker[Symbol.dispose]();
  }
}
