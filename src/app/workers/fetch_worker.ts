// The Worker that fetches NAR files. It reads the network, writes the disk and hashes, so the main
// thread only serves clients.
import { type WorkerScope, workerScope } from "../../base/worker_scope.ts";
import type { FetchOrder, FetchOutcome, FetchProgress } from "../../cache/fetch/nar_fetcher.ts";
import { PartialFile, WriteAllowance } from "../../cache/fetch/partial_file.ts";
import { SinkFetch } from "../../cache/fetch/sink_fetcher.ts";
import type { HttpClient } from "../../runtime/net.ts";
import { type Runtime, SYSTEM_RUNTIME } from "../../runtime/runtime.ts";
import { createUpstreamClient } from "../../upstream/http/upstream_fetch.ts";
import { HttpNarSource, type HttpNarSourceDeps } from "../../upstream/http/http_nar_source.ts";
import type { FromFetchWorker, ToFetchWorker } from "./messages.ts";

type FetchMessage = Extract<ToFetchWorker, { type: "fetch" }>;

/** A file that is being fetched. */
interface Job {
  readonly fetch: SinkFetch;
  /** Set while the job waits for more room. */
  granted: ((bytes: number) => void) | undefined;
}

/** Runs the thread behind `scope`. Disposing of the result frees what its end would. */
export function runFetchThread(
  scope: WorkerScope<ToFetchWorker, FromFetchWorker>,
  { net }: Pick<Runtime, "net">,
): Disposable {
  let client: HttpClient | undefined;
  let upstreams: ReadonlyMap<string, Omit<HttpNarSourceDeps, "trace">> = new Map();
  const jobs = new Map<number, Job>();

  scope.onmessage = ({ data }) => {
    switch (data.type) {
      case "start": {
        const shared = client = createUpstreamClient(net, data.caCertificates);
        upstreams = new Map(
          data.upstreams.map((settings) => [settings.url, { settings, client: shared }]),
        );
        return;
      }
      case "begin": {
        return void jobs.set(data.id, jobOf(data.id, data.order));
      }
      case "room":
        return jobs.get(data.id)?.granted?.(data.bytes);
      case "fetch": {
        const job = jobs.get(data.id);
        if (job !== undefined) void run(data, job);
        return;
      }
      case "close":
        return void close(data.id);
    }
  };

  function jobOf(id: number, order: FetchOrder): Job {
    const allowance = new WriteAllowance(order.roomBytes, (bytes) => {
      const { promise, resolve } = Promise.withResolvers<number>();
      job.granted = resolve;
      scope.postMessage({ id, event: { type: "room", bytes } });
      return promise;
    });
    const report = (event: FetchProgress) => scope.postMessage({ id, event });
    const fetch = new SinkFetch(() => new PartialFile({ order, allowance, report }));
    const job: Job = { fetch, granted: undefined };
    return job;
  }

  async function run(message: FetchMessage, job: Job): Promise<void> {
    const { id, attempt, source, headers, isFinal } = message;
    const configured = upstreams.get(source.upstream);
    let status: number | undefined;
    // One for each fetch, as each belongs to its own trace.
    const trace = { headers: () => headers, answered: (given: number) => void (status = given) };
    const outcome: FetchOutcome = configured === undefined
      ? { type: "absent" }
      : await job.fetch.from({
        upstream: new HttpNarSource({ ...configured, trace }),
        idleTimeoutMs: configured.settings.idleTimeoutMs,
        ...{ source, isFinal },
        taken: () => scope.postMessage({ id, attempt, event: { type: "taken" } }),
      });
    const event = { ...outcome, ...(status === undefined ? {} : { status }) };
    scope.postMessage({ id, attempt, event });
  }

  async function close(id: number): Promise<void> {
    const job = jobs.get(id);
    jobs.delete(id);
    const closed = job?.fetch[Symbol.asyncDispose]();
    job?.granted?.(0);
    await closed;
  }

  return {
    [Symbol.dispose]() {
      for (const id of jobs.keys()) void close(id);
      client?.[Symbol.dispose]();
    },
  };
}

if (import.meta.main) runFetchThread(workerScope(), SYSTEM_RUNTIME);
