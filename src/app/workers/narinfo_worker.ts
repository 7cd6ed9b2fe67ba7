// The Worker that fetches, parses, verifies and signs narinfos. The main thread keeps their
// timeouts, queues and spans. It writes no file, so no slow disk holds a narinfo.
import { messageOf } from "../../base/failure.ts";
import { type WorkerScope, workerScope } from "../../base/worker_scope.ts";
import { DECODER_HERE, decodingWith } from "../../cache/verify/decode_encoded.ts";
import { parsePublicKey, parseSecretKey } from "../../nix/signature.ts";
import { TrustedKeys } from "../../nix/trusted_keys.ts";
import { clock } from "../../runtime/current.ts";
import type { HttpClient } from "../../runtime/net.ts";
import { type Runtime, SYSTEM_RUNTIME } from "../../runtime/runtime.ts";
import { createUpstreamClient } from "../../upstream/http/upstream_fetch.ts";
import { HttpNarinfoFetcher } from "../../upstream/http/http_narinfo_source.ts";
import type { NarinfoFetcher } from "../../upstream/http/narinfo_fetcher.ts";
import type { FromNarinfoWorker, NarinfoWorkerOrder, ToNarinfoWorker } from "./messages.ts";
import { Outbox } from "./outbox.ts";

type StartMessage = Extract<ToNarinfoWorker, { type: "start" }>;
type NarinfoMessage = Extract<NarinfoWorkerOrder, { type: "fetch" }>;

/** A status that comes so much before its body has a message of its own: spans name it. */
const EARLY_STATUS_MS = 20;

/** Runs the thread behind `scope`. Disposing of the result frees what its end would. */
export function runNarinfoThread(
  scope: WorkerScope<ToNarinfoWorker, readonly FromNarinfoWorker[]>,
  { net }: Pick<Runtime, "net">,
): Disposable {
  let client: HttpClient | undefined;
  const outbox = new Outbox<FromNarinfoWorker>((messages) => scope.postMessage(messages));
  const earlyStatuses = clock.sharedTimer(EARLY_STATUS_MS);
  const running = new Map<number, AbortController>();
  let fetchers: ReadonlyMap<string, NarinfoFetcher> = new Map();

  scope.onmessage = ({ data }) => {
    if (data.type === "start") fetchers = fetchersOf(data);
    else for (const order of data.orders) take(order);
  };

  function take(order: NarinfoWorkerOrder): void {
    switch (order.type) {
      case "ping":
        return outbox.add({ id: order.id, type: "pong" });
      case "fetch":
        return void run(order);
      case "cancel":
        return running.get(order.id)?.abort();
    }
  }

  function fetchersOf(start: StartMessage): ReadonlyMap<string, NarinfoFetcher> {
    const { upstreams, caCertificates, requireSignature } = start;
    const shared = client = createUpstreamClient(net, caCertificates);
    const keys = new TrustedKeys(start.trustedKeys.map(parsePublicKey));
    const secretKey = start.secretKey === undefined ? undefined : parseSecretKey(start.secretKey);
    const decode = decodingWith(DECODER_HERE);
    const deps = { client: shared, decode, keys, requireSignature, secretKey };
    return new Map(
      upstreams.map((settings) => [settings.url, new HttpNarinfoFetcher({ settings, ...deps })]),
    );
  }

  async function run({ id, upstream, order }: NarinfoMessage): Promise<void> {
    const abort = new AbortController();
    running.set(id, abort);
    let status: number | undefined;
    let early: Disposable | undefined;
    const answered = (given: number) => {
      status = given;
      early = earlyStatuses.start(() => outbox.add({ id, type: "answered", status: given }));
    };
    const busy = () => outbox.add({ id, type: "busy" });
    try {
      const fetcher = fetchers.get(upstream);
      if (fetcher === undefined) throw new Error(`Cannot find upstream ${upstream}`);
      const reading = await fetcher.fetch(order, { signal: abort.signal, answered, busy });
      // Nobody waits for a cancelled one.
      if (!abort.signal.aborted) outbox.add({ id, type: "read", reading, status });
    } catch (error) {
      outbox.add({ id, type: "broken", error: messageOf(error) });
    } finally {
      early?.[Symbol.dispose]();
      running.delete(id);
    }
  }

  return {
    [Symbol.dispose]() {
      for (const abort of running.values()) abort.abort();
      client?.[Symbol.dispose]();
    },
  };
}

if (import.meta.main) runNarinfoThread(workerScope(), SYSTEM_RUNTIME);
