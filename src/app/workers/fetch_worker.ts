// The thread that fetches NAR files: it reads the network, writes the disk and hashes, so that
// the main thread only has to feed clients.
import { messageOf } from "../../base/failure.ts";
import { FetchError } from "../../cache/download/fetch_error.ts";
import { fetchNar } from "../../cache/download/fetch_nar.ts";
import type { FetchOrder, FetchOutcome } from "../../cache/download/nar_fetcher.ts";
import { PartialFile } from "../../cache/download/partial_file.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import { createUpstreamClient } from "../../upstream/http/http_client.ts";
import { HttpNarSource } from "../../upstream/http/http_nar_source.ts";
import type { FromFetchWorker, ToFetchWorker } from "./messages.ts";
import { workerScope } from "./worker_scope.ts";

const scope = workerScope<ToFetchWorker, FromFetchWorker>();

interface ConfiguredUpstream {
  readonly upstream: HttpNarSource;
  readonly idleTimeoutMs: number;
}

/** One file under way. */
interface Job {
  readonly order: FetchOrder;
  readonly abort: AbortController;
  /** Made with the first source. */
  file: PartialFile | undefined;
  running: Promise<void>;
}

let upstreams: ReadonlyMap<string, ConfiguredUpstream> = new Map();
const jobs = new Map<number, Job>();

scope.onmessage = ({ data }) => {
  switch (data.type) {
    case "start": {
      const client = createUpstreamClient(data.caCertificates);
      upstreams = new Map(data.upstreams.map((settings) => {
        const upstream = new HttpNarSource(settings, client);
        return [settings.url, { upstream, idleTimeoutMs: settings.idleTimeoutMs }];
      }));
      return;
    }
    case "begin": {
      const { id, order } = data;
      const abort = new AbortController();
      return void jobs.set(id, { order, abort, file: undefined, running: Promise.resolve() });
    }
    case "fetch": {
      const job = jobs.get(data.id);
      if (job !== undefined) job.running = run(data.id, job, data.source);
      return;
    }
    case "close":
      return void close(data.id);
  }
};

async function run(id: number, job: Job, source: NarSource): Promise<void> {
  const tell = (event: FromFetchWorker["event"]) => scope.postMessage({ id, event });
  const configured = upstreams.get(source.upstream);
  if (configured === undefined) return tell({ type: "absent" });
  try {
    const file = job.file ??= new PartialFile(job.order);
    tell(await fetchNar({ ...configured, source, file, signal: job.abort.signal, tell }));
  } catch (error) {
    tell(failed(error));
  }
}

function failed(error: unknown): FetchOutcome {
  const reason = error instanceof FetchError ? error.reason : "upstream";
  return { type: "failed", reason, detail: messageOf(error) };
}

async function close(id: number): Promise<void> {
  const job = jobs.get(id);
  jobs.delete(id);
  job?.abort.abort();
  await job?.running;
  job?.file?.[Symbol.dispose]();
}
