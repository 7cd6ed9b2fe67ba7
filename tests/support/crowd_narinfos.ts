import { WORKER_THREADS } from "../../src/runtime/threads.ts";
import { WorkerNarinfos } from "../../src/app/workers/worker_narinfos.ts";
import { parsePublicKey, type SecretKey } from "../../src/nix/signature.ts";
import { SILENT } from "../../src/telemetry/logger.ts";
import type { HttpUpstreamSettings } from "../../src/upstream/http/upstream_fetch.ts";
import type { NarinfoFetcher } from "../../src/upstream/http/narinfo_fetcher.ts";
import { eventually } from "./eventually.ts";
import type { FakeUpstream } from "./fake_upstream.ts";
import { makeStoreObject } from "./store_object.ts";

/** No answer is late here, however busy the machine is. */
const LONG_TIMEOUT_MS = 60_000;

const { storePathHash } = makeStoreObject({ name: "nobody-has-it" });

export interface WorkerParts {
  readonly upstream: FakeUpstream;
  readonly secretKey: SecretKey;
  readonly requireSignature: boolean;
}

export function settingsOf({ url }: FakeUpstream): HttpUpstreamSettings {
  return {
    url,
    authorization: "Basic s3cret",
    ...{ dialTimeoutMs: LONG_TIMEOUT_MS, headerTimeoutMs: LONG_TIMEOUT_MS },
    idleTimeoutMs: LONG_TIMEOUT_MS,
    userAgent: "larder-test",
  };
}

export function workerNarinfos({ upstream, ...rules }: WorkerParts): WorkerNarinfos {
  return new WorkerNarinfos({
    threads: WORKER_THREADS,
    ...rules,
    settings: [settingsOf(upstream)],
    caCertificates: [],
    trustedKeys: [parsePublicKey(upstream.publicKey)],
    log: SILENT,
  });
}

/** Resolves when the Worker is up. Each narinfo that it does not take fails. */
export async function crowdNarinfos(worker: WorkerNarinfos, { url }: FakeUpstream) {
  const fetchers = worker.over(url, NONE);
  const alone: NarinfoFetcher = { fetch: (order, watch) => fetchers.fetch(order, watch) };
  const crowd: NarinfoFetcher = {
    fetch(order, watch) {
      // It makes a crowd, and is no request.
      void fetchers.fetch(order, { ...watch, signal: AbortSignal.abort() });
      return fetchers.fetch(order, watch);
    },
  };
  const order = { storePathHash, headers: {}, isFinal: true };
  const watch = { signal: new AbortController().signal, answered() {}, busy() {} };
  const isUp = async () => await crowd.fetch(order, watch) !== OWN;
  await eventually("the Worker is up", isUp);
  return { alone, crowd };
}

const OWN = { kind: "failed", reason: "status", detail: "this thread has it" } as const;
const NONE: NarinfoFetcher = { fetch: () => Promise.resolve(OWN) };
