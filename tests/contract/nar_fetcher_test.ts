import { WORKER_THREADS } from "../../src/runtime/threads.ts";
import { SYSTEM_NET } from "../../src/runtime/system_net.ts";
import { WorkerFetcher } from "../../src/app/workers/worker_fetcher.ts";
import { PartialFile, WriteAllowance } from "../../src/cache/fetch/partial_file.ts";
import { type NarFetcher, observedFetcher } from "../../src/cache/fetch/nar_fetcher.ts";
import { SinkFetcher } from "../../src/cache/fetch/sink_fetcher.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { NO_TRACER } from "../../src/telemetry/tracer.ts";
import {
  createUpstreamClient,
  type HttpUpstreamSettings,
} from "../../src/upstream/http/upstream_fetch.ts";
import { HttpNarSource } from "../../src/upstream/http/http_nar_source.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract } from "./contract.ts";
import { type FetcherScene, narFetcherClauses, OBJECT } from "./nar_fetcher_contract.ts";

type Opener = (opened: AsyncDisposableStack, settings: HttpUpstreamSettings) => NarFetcher;

const openers: Readonly<Record<string, Opener>> = {
  SinkFetcher: onThisThread,
  WorkerFetcher: inWorker,
  "observed SinkFetcher": (opened, settings) => observed(onThisThread(opened, settings), settings),
  "observed WorkerFetcher": (opened, settings) => observed(inWorker(opened, settings), settings),
};

for (const [name, open] of Object.entries(openers)) {
  checkContract({ name, open: () => sceneOf(open) }, narFetcherClauses);
}

async function sceneOf(open: Opener): Promise<FetcherScene & AsyncDisposable> {
  const opened = new AsyncDisposableStack();
  const path = `${opened.use(tempFolder()).path}/file`;
  Deno.writeTextFileSync(path, "");
  const upstream = opened.use(await fakeUpstream({ objects: [OBJECT], stored: true }));
  // No request of a clause ends by these.
  const times = { dialTimeoutMs: 120_000, headerTimeoutMs: 120_000, idleTimeoutMs: 120_000 };
  const settings = { url: upstream.url, ...times, userAgent: "larder-test" };
  return {
    fetcher: open(opened, settings),
    quick: open(opened, { ...settings, idleTimeoutMs: 1_000 }),
    ...{ upstream, path },
    location: await upstream.narUrlOf(OBJECT),
    file: (await upstream.narFileOf(OBJECT)).bytes,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** With the sink that the Worker has. */
function onThisThread(opened: AsyncDisposableStack, settings: HttpUpstreamSettings): NarFetcher {
  const client = createUpstreamClient(SYSTEM_NET, []);
  opened.defer(() => client[Symbol.dispose]());
  const narClients = new Map([[settings.url, new HttpNarSource({ settings, client })]]);
  const sinks = new SinkFetcher({ narClients, idleTimeoutMs: settings.idleTimeoutMs });
  return {
    begin: (order, listener) =>
      sinks.begin(({ progress, room }) => {
        const allowance = new WriteAllowance(order.roomBytes, room);
        return new PartialFile({ order, allowance, report: progress });
      }, listener),
  };
}

function inWorker(opened: AsyncDisposableStack, settings: HttpUpstreamSettings): NarFetcher {
  return opened.use(
    new WorkerFetcher({ threads: WORKER_THREADS, settings: [settings], caCertificates: [] }),
  );
}

function observed(inner: NarFetcher, { url }: HttpUpstreamSettings): NarFetcher {
  const metrics = new Metrics({ domains: { upstreams: [url] } });
  const isUpstream = (upstream: string) => upstream === url;
  return observedFetcher(inner, { metrics, tracer: NO_TRACER, isUpstream });
}
