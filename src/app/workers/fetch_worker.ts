// The thread that fetches NAR files: it reads the network, writes the disk and hashes, so that
// the main thread only has to feed clients.
import { messageOf } from "../../base/failure.ts";
import { FetchError } from "../../cache/fetch/fetch_error.ts";
import { fetchNar } from "../../cache/fetch/fetch_nar.ts";
import { WriteAllowance } from "../../cache/fetch/write_allowance.ts";
import type { FetchOrder, FetchOutcome } from "../../cache/fetch/nar_fetcher.ts";
import { PartialFile } from "../../cache/fetch/partial_file.ts";
import { createUpstreamClient } from "../../upstream/http/http_client.ts";
import { HttpNarSource, type HttpNarSourceDeps } from "../../upstream/http/http_nar_source.ts";
import type { FromFetchWorker, ToFetchWorker } from "./messages.ts";
import { workerScope } from "../../base/worker_scope.ts";

const scope = workerScope<ToFetchWorker, FromFetchWorker>();

type FetchMessage = Extract<ToFetchWorker, { type: "fetch" }>;

/** One file under way. */
interface Job {
  readonly order: FetchOrder;
  /** Sources that are asked, by the number of the attempt. */
  readonly attempts: Map<number, AbortController>;
  /** The attempt whose source has answered, until it is over. */
  taken: number | undefined;
  readonly room: WriteAllowance;
  /** Set while more room is wanted. */
  granted: ((bytes: number) => void) | undefined;
  /** Made with the first source. */
  file: PartialFile | undefined;
  readonly running: Set<Promise<void>>;
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
      if (job !== undefined) start(data, job);
      return;
    }
    case "close":
      return void close(data.id);
  }
};

function jobOf(id: number, order: FetchOrder): Job {
  const job: Job = {
    order,
    attempts: new Map(),
    taken: undefined,
    room: new WriteAllowance(order.roomBytes, (bytes) => {
      const { promise, resolve } = Promise.withResolvers<number>();
      job.granted = resolve;
      scope.postMessage({ id, event: { type: "room", bytes } });
      return promise;
    }),
    granted: undefined,
    file: undefined,
    running: new Set(),
  };
  return job;
}

function start(message: FetchMessage, job: Job): void {
  const { id, attempt } = message;
  const abort = new AbortController();
  job.attempts.set(attempt, abort);
  const running = run(message, job, abort.signal).then((event) => {
    job.attempts.delete(attempt);
    if (job.taken === attempt) job.taken = undefined;
    job.running.delete(running);
    scope.postMessage({ id, attempt, event });
  });
  job.running.add(running);
}

async function run(
  { id, attempt, source, headers }: FetchMessage,
  job: Job,
  signal: AbortSignal,
): Promise<FetchOutcome> {
  const configured = upstreams.get(source.upstream);
  if (configured === undefined) return { type: "absent" };
  try {
    const file = job.file ??= new PartialFile(job.order);
    // One for each fetch: each belongs to a trace of its own.
    let status: number | undefined;
    let requests = 0;
    const trace = { headers: () => headers, answered: (given: number) => void (status = given) };
    const outcome = await fetchNar({
      upstream: new HttpNarSource({ ...configured, trace }),
      idleTimeoutMs: configured.settings.idleTimeoutMs,
      source,
      file,
      room: job.room,
      signal,
      tell: (event) => scope.postMessage({ id, event }),
      take: () => take(id, attempt, job),
      asked: () => void requests++,
    });
    return { ...outcome, requests, ...(status === undefined ? {} : { status }) };
  } catch (error) {
    return failed(error);
  }
}

/** The first source that answers writes the file; the others are given up. */
function take(id: number, attempt: number, job: Job): boolean {
  if (job.taken !== undefined) return false;
  job.taken = attempt;
  for (const [other, abort] of job.attempts) {
    if (other !== attempt) abort.abort(new FetchError("outrun", "another has answered first"));
  }
  scope.postMessage({ id, attempt, event: { type: "taken" } });
  return true;
}

function failed(error: unknown): FetchOutcome {
  const reason = error instanceof FetchError ? error.reason : "upstream";
  return { type: "failed", reason, detail: messageOf(error) };
}

async function close(id: number): Promise<void> {
  const job = jobs.get(id);
  jobs.delete(id);
  for (const abort of job?.attempts.values() ?? []) abort.abort();
  job?.granted?.(0);
  await Promise.all(job?.running ?? []);
  job?.file?.[Symbol.dispose]();
}
