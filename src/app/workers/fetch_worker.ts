// The thread that fetches NAR files: it reads the network, writes the disk and hashes, so that
// the main thread only has to feed clients.
import { messageOf } from "../../base/failure.ts";
import { FetchError } from "../../cache/download/fetch_error.ts";
import { fetchNar } from "../../cache/download/fetch_nar.ts";
import { FetchRoom } from "../../cache/download/fetch_room.ts";
import type { FetchOrder, FetchOutcome } from "../../cache/download/nar_fetcher.ts";
import { PartialFile } from "../../cache/download/partial_file.ts";
import { createUpstreamClient } from "../../upstream/http/http_client.ts";
import { HttpNarSource, type HttpNarSourceDeps } from "../../upstream/http/http_nar_source.ts";
import type { FromFetchWorker, ToFetchWorker } from "./messages.ts";
import { workerScope } from "./worker_scope.ts";

const scope = workerScope<ToFetchWorker, FromFetchWorker>();

type FetchMessage = Extract<ToFetchWorker, { type: "fetch" }>;

/** One file under way. */
interface Job {
  readonly order: FetchOrder;
  readonly abort: AbortController;
  readonly room: FetchRoom;
  /** Set while more room is wanted. */
  granted: ((bytes: number) => void) | undefined;
  /** Made with the first source. */
  file: PartialFile | undefined;
  running: Promise<void>;
}

let upstreams: ReadonlyMap<string, Omit<HttpNarSourceDeps, "trace">> = new Map();
const jobs = new Map<number, Job>();

scope.onmessage = ({ data }) => {
  switch (data.type) {
    case "start": {
      const client = createUpstreamClient(data.caCertificates);
      upstreams = new Map(
        data.upstreams.map((settings) => [settings.url, { settings, client }]),
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
      if (job !== undefined) job.running = run(data, job);
      return;
    }
    case "close":
      return void close(data.id);
  }
};

function jobOf(id: number, order: FetchOrder): Job {
  const job: Job = {
    order,
    abort: new AbortController(),
    room: new FetchRoom(order.roomBytes, (bytes) => {
      const { promise, resolve } = Promise.withResolvers<number>();
      job.granted = resolve;
      scope.postMessage({ id, event: { type: "room", bytes } });
      return promise;
    }),
    granted: undefined,
    file: undefined,
    running: Promise.resolve(),
  };
  return job;
}

async function run({ id, source, headers }: FetchMessage, job: Job): Promise<void> {
  const tell = (event: FromFetchWorker["event"]) => scope.postMessage({ id, event });
  const configured = upstreams.get(source.upstream);
  if (configured === undefined) return tell({ type: "absent" });
  try {
    const file = job.file ??= new PartialFile(job.order);
    // One for each fetch: each belongs to a trace of its own.
    let status: number | undefined;
    let requests = 0;
    const trace = { headers: () => headers, answered: (given: number) => void (status = given) };
    const upstream = new HttpNarSource({ ...configured, trace });
    const { idleTimeoutMs } = configured.settings;
    const { room, abort: { signal } } = job;
    const asked = () => void requests++;
    const parts = { upstream, idleTimeoutMs, source, file, room, signal, tell, asked };
    const outcome = { ...await fetchNar(parts), requests };
    tell(status === undefined ? outcome : { ...outcome, status });
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
  job?.granted?.(0);
  await job?.running;
  job?.file?.[Symbol.dispose]();
}
