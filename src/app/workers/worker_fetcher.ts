import type {
  FetchListener,
  FetchOrder,
  FetchOutcome,
  NarFetch,
  NarFetcher,
} from "../../cache/fetch/nar_fetcher.ts";
import type { Threads } from "../../runtime/threads.ts";
import type {
  CaCertificates,
  HttpUpstreamSettings,
  UpstreamTrace,
} from "../../upstream/http/upstream_fetch.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromFetchWorker, ToFetchWorker } from "./messages.ts";

export interface WorkerFetcherDeps {
  readonly threads: Threads;
  readonly settings: readonly HttpUpstreamSettings[];
  readonly caCertificates: CaCertificates;
  /** Called on the main thread, which knows the trace. */
  readonly trace?: Pick<UpstreamTrace, "headers"> | undefined;
}

interface FetchCalls {
  readonly settle: (outcome: FetchOutcome) => void;
  readonly taken: () => void;
}

/** A NarFetcher that runs in a Worker. */
export class WorkerFetcher implements NarFetcher, Disposable {
  readonly #worker: JobWorker<ToFetchWorker, FromFetchWorker>;
  readonly #trace: Pick<UpstreamTrace, "headers"> | undefined;

  constructor({ threads, settings, caCertificates, trace }: WorkerFetcherDeps) {
    this.#trace = trace;
    this.#worker = new JobWorker<ToFetchWorker, FromFetchWorker>({
      threads,
      url: new URL("./fetch_worker.ts", import.meta.url),
      start: { type: "start", upstreams: settings, caCertificates } satisfies ToFetchWorker,
      died: (id, detail) => ({ id, event: { type: "failed", reason: "cancelled", detail } }),
    });
  }

  begin(order: FetchOrder, listener: FetchListener): NarFetch {
    const worker = this.#worker;
    const attempts = new Map<number, FetchCalls>();
    let lastAttempt = 0;
    /** The outcome of all attempts behind the end of the Worker or of this fetch. */
    let over: FetchOutcome | undefined;
    const end = (outcome: FetchOutcome) => {
      over = outcome;
      for (const { settle } of attempts.values()) settle(outcome);
      attempts.clear();
    };
    const id = worker.open(({ attempt, event }) => {
      if (event.type === "opened" || event.type === "bytes") return listener.progress(event);
      if (event.type === "room") return void grant(event.bytes);
      if (event.type === "taken") return attempts.get(attempt ?? 0)?.taken();
      // The Worker has died: a new one knows nothing of this file.
      if (attempt === undefined) return end(event);
      attempts.get(attempt)?.settle(event);
      attempts.delete(attempt);
    });
    const grant = async (wanted: number) => {
      const bytes = await listener.room(wanted);
      if (over === undefined) worker.send({ type: "room", id, bytes });
    };
    worker.send({ type: "begin", id, order });
    return {
      from: (source, taken = () => undefined, isFinal = false) =>
        new Promise((settle) => {
          if (over !== undefined) return settle(over);
          const attempt = ++lastAttempt;
          attempts.set(attempt, { settle, taken });
          const headers = this.#trace?.headers() ?? {};
          worker.send({ type: "fetch", id, attempt, source, headers, isFinal });
        }),
      [Symbol.dispose]: () => {
        if (over !== undefined) return worker.forget(id);
        worker.send({ type: "close", id });
        worker.forget(id);
        end({ type: "failed", reason: "cancelled", detail: "it is over" });
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
}
