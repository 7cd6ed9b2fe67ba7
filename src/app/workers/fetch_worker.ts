// The thread that fetches NAR files: it reads the network, writes the disk and hashes, so that
// the main thread only has to feed clients.
import { fetchNar } from "../../cache/download/fetch_nar.ts";
import type { FetchOrder } from "../../cache/download/nar_fetcher.ts";
import { createUpstreamClient } from "../../upstream/http/http_client.ts";
import { HttpNarSource } from "../../upstream/http/http_nar_source.ts";
import type { FromFetchWorker, ToFetchWorker } from "./messages.ts";
import { workerScope } from "./worker_scope.ts";

const scope = workerScope<ToFetchWorker, FromFetchWorker>();

interface ConfiguredSource {
  readonly source: HttpNarSource;
  readonly idleTimeoutMs: number;
}

let sources: ReadonlyMap<string, ConfiguredSource> = new Map();
const underWay = new Map<number, AbortController>();

scope.onmessage = ({ data }) => {
  switch (data.type) {
    case "start": {
      const client = createUpstreamClient(data.caCertificates);
      sources = new Map(data.upstreams.map((settings) => {
        const source = new HttpNarSource(settings, client);
        return [settings.url, { source, idleTimeoutMs: settings.idleTimeoutMs }];
      }));
      return;
    }
    case "fetch":
      return void run(data.id, data.order);
    case "cancel":
      return underWay.get(data.id)?.abort();
  }
};

async function run(id: number, order: FetchOrder): Promise<void> {
  const tell = (event: FromFetchWorker["event"]) => scope.postMessage({ id, event });
  const configured = sources.get(order.upstream);
  if (configured === undefined) return tell({ type: "absent" });
  const abort = new AbortController();
  underWay.set(id, abort);
  const { source, idleTimeoutMs } = configured;
  await fetchNar(source, { ...order, idleTimeoutMs }, abort.signal, tell);
  underWay.delete(id);
}
