import type {
  FetchListener,
  FetchOrder,
  FetchOutcome,
  NarFetch,
  NarFetcher,
} from "../../cache/fetch/nar_fetcher.ts";
import type { CaCertificates, HttpUpstreamSettings } from "../../upstream/http/http_settings.ts";
import type { UpstreamTrace } from "../../upstream/http/upstream_trace.ts";
import { JobWorker } from "./job_worker.ts";
import type { FromFetchWorker, ToFetchWorker } from "./messages.ts";

export interface WorkerFetcherDeps {
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

  constructor({ settings, caCertificates, trace }: WorkerFetcherDeps) {
    this.#trace = trace;
    this.#worker = new JobWorker<ToFetchWorker, FromFetchWorker>({
      url: new URL("./fetch_worker.ts", import.meta.url),
      start: { type: "start", upstreams: settings, caCertificates } satisfies ToFetchWorker,
      died: (id, detail) => ({ id, event: { type: "failed", reason: "cancelled", detail } }),
    });
  }

  begin(order: FetchOrder, listener: FetchListener): NarFetch {
    const worker = this.#worker;
    const attempts = new Map<number, FetchCalls>();
    let lastAttempt = 0;
    /** The outcome after the Worker's death: a new Worker knows nothing of this file. */
    let dead: FetchOutcome | undefined;
    const id = worker.open(({ attempt, event }) => {
      if (event.type === "opened" || event.type === "bytes") return listener.progress(event);
      if (event.type === "room") return void grant(event.bytes);
      const current = attempts.get(attempt ?? 0);
      if (event.type === "taken") return current?.taken();
      if (event.type === "failed" && event.reason === "cancelled") dead = event;
      for (const one of attempt === undefined ? attempts.values() : [current]) one?.settle(event);
      if (attempt !== undefined) attempts.delete(attempt);
    });
    const grant = async (wanted: number) => {
      const bytes = await listener.room(wanted);
      if (dead === undefined) worker.send({ type: "room", id, bytes });
    };
    worker.send({ type: "begin", id, order });
    return {
      from: (source, taken = () => undefined, isFinal = false) =>
        new Promise((settle) => {
          if (dead !== undefined) return settle(dead);
          const attempt = ++lastAttempt;
          attempts.set(attempt, { settle, taken });
          const headers = this.#trace?.headers() ?? {};
          worker.send({ type: "fetch", id, attempt, source, headers, isFinal });
        }),
      [Symbol.dispose]: () => {
        if (dead === undefined) worker.send({ type: "close", id });
        worker.forget(id);
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
