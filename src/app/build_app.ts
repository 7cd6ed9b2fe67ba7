import { Demotions } from "../cache/sources/demotions.ts";
import { allUnderWay } from "../cache/download/download_progress.ts";
import { Downloads } from "../cache/download/downloads.ts";
import { observedFetcher } from "../cache/fetch/observed_fetcher.ts";
import { SinkFetcher } from "../cache/fetch/sink_fetcher.ts";
import { PassThroughTransfers } from "../cache/pass_through/pass_through_transfers.ts";
import { NegativeCache } from "../cache/negative_cache.ts";
import { createSigner } from "../cache/own_signature.ts";
import { ArchiveServer } from "../cache/serve_archive.ts";
import { NarServer } from "../cache/serve_nar.ts";
import { NarinfoServer } from "../cache/serve_narinfo.ts";
import { StorePathNames } from "../cache/store_path_names.ts";
import { Uses } from "../cache/uses.ts";
import { AccessRules } from "../http/access/access_rules.ts";
import { HttpMetrics } from "../http/pipeline/http_metrics.ts";
import { RequestObserver } from "../http/pipeline/request_observer.ts";
import { createRequestPipeline, type RequestPipeline } from "../http/pipeline/request_pipeline.ts";
import { Router } from "../http/routes/router.ts";
import { documentRoutes } from "../http/routes/documents.ts";
import { gcRoute } from "../http/routes/gc.ts";
import { HEALTHZ_ROUTE, readyzRoute } from "../http/routes/health.ts";
import { metricsRoute } from "../http/routes/metrics.ts";
import { narRoute } from "../http/routes/nar.ts";
import { narinfoRoute } from "../http/routes/narinfo.ts";
import { nixCacheInfoRoute } from "../http/routes/nix_cache_info.ts";
import { pubkeyRoute } from "../http/routes/pubkey.ts";
import { pinnedClosuresRoute } from "../http/routes/pinned_closures.ts";
import { pinRoute } from "../http/routes/pin.ts";
import { pinsRoute } from "../http/routes/pins.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import { TrustedKeys } from "../nix/trusted_keys.ts";
import { ActiveReads } from "../space/active_reads.ts";
import { gcEvents } from "../space/gc_events.ts";
import type { Space } from "../space/space.ts";
import { PinnedClosures } from "../pins/pinned_closures.ts";
import { Pins } from "../pins/pins.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { NO_TRACER } from "../telemetry/tracer.ts";
import { createUpstreamClient } from "../upstream/http/http_client.ts";
import { HttpNarinfoSource } from "../upstream/http/http_narinfo_source.ts";
import { HttpNarSource } from "../upstream/http/http_nar_source.ts";
import { LastAnswers } from "../upstream/last_answers.ts";
import { meteredNarinfoSource } from "../upstream/metered_narinfo_source.ts";
import { queuedNarinfoSource } from "../upstream/queued_narinfo_source.ts";
import { tracedNarSource } from "../upstream/traced_nar_source.ts";
import { tracedNarinfoSource } from "../upstream/traced_narinfo_source.ts";
import { createUpstreamLog } from "../upstream/upstream_log.ts";
import { UpstreamPool } from "../upstream/upstream_pool.ts";
import { buildDocuments } from "./build_documents.ts";
import { buildKeptNars } from "./build_kept_nars.ts";
import { buildPage } from "./build_page.ts";
import { buildRemover, buildSpace } from "./build_space.ts";
import type { AppParts } from "./app_parts.ts";
import { narPatience } from "./upstream_settings.ts";
import { tracedSpace } from "./traced_stores.ts";
import { WorkerFetcher } from "./workers/worker_fetcher.ts";
import { WorkerVerifier } from "./workers/worker_verifier.ts";

/** Everything but the socket. */
export interface App extends AsyncDisposable {
  /** Answers one request; never rejects. */
  readonly pipeline: RequestPipeline;
  /** Finds out in the background which upstreams are there. */
  lookAtUpstreams(): void;
  /** From now on `/readyz` says no. */
  stopping(): void;
  /** The NAR files' space: its accounts are read before anything is handled. */
  readonly space: Space;
  readonly reads: Pick<ActiveReads, "names">;
  readonly uses: Pick<Uses, "flush">;
  /** Resolves when no download is running. */
  downloadsOver(): Promise<void>;
}

/** Wires the cache to its back ends. The caller keeps and closes the stores. */
export function buildApp(parts: AppParts): App {
  const resources = new AsyncDisposableStack();
  const { stores, identity, telemetry } = parts;
  const { metrics, log } = telemetry;
  const cache = buildCache(parts, metrics, resources);
  const { narinfos, nars, documents, downloads, space, reads, remover } = cache;
  const closures = resources.use(stores.closures ?? new PinnedClosures(stores));
  const names = new StorePathNames({ metadata: stores.metadata, log });
  const page = buildPage(parts, { ...cache, closures, names });
  const pinsChanged = () => {
    page.pinsChanged();
    void space.altered();
  };
  const pins = new Pins({ ...stores, nowMs: parts.nowMs, changed: pinsChanged });
  let ready = true;
  const routes = [
    nixCacheInfoRoute(identity.priority),
    pubkeyRoute(identity.secretKey?.publicKey.text),
    HEALTHZ_ROUTE,
    readyzRoute(() => ready),
    narinfoRoute({ narinfos, metrics, ...remover.narinfos }),
    narRoute({ nars, names, metrics, ...remover.nars }),
    pinRoute(pins),
    pinsRoute(pins),
    gcRoute({ gc: (order) => gcEvents(space, order) }),
    pinnedClosuresRoute(closures),
    ...page.routes,
    ...documentRoutes(documents),
    ...telemetry.hasMetricsRoute ? [metricsRoute(metrics)] : [],
  ];
  const httpMetrics = telemetry.countsRequests ? new HttpMetrics(metrics, routes) : undefined;
  const observer = new RequestObserver({
    metrics: httpMetrics,
    log,
    scheme: identity.usesTls ? "https" : "http",
  });
  return {
    pipeline: createRequestPipeline({
      router: new Router(routes),
      access: new AccessRules(identity),
      observer,
      tracer: telemetry.tracer,
      log,
    }),
    space,
    reads,
    uses: cache.uses,
    lookAtUpstreams: () => cache.pool.start(),
    stopping: () => void (ready = false),
    downloadsOver: () => downloads.over(),
    async [Symbol.asyncDispose]() {
      await resources.disposeAsync();
      await page[Symbol.asyncDispose]();
      await downloads.over();
      await space[Symbol.asyncDispose]();
    },
  };
}

function buildCache(parts: AppParts, metrics: Metrics, resources: AsyncDisposableStack) {
  const { nowMs, negativeTtlMs, identity, telemetry, stores } = parts;
  const { metadata, nars, tempFolder } = stores;
  const { log, tracer = NO_TRACER } = telemetry;
  const negative = new NegativeCache(negativeTtlMs);
  const absentDocuments = new NegativeCache<DocumentPath>(negativeTtlMs);
  const upstreams = buildUpstreams(parts, metrics, resources, () => {
    negative.clear();
    absentDocuments.clear();
  });
  const { pool, narSources, lastAnswers } = upstreams;
  const demotions = new Demotions();
  const candidates = { metadata, pool, demotions };
  const patience = narPatience(parts.upstream.settings);
  const workers = {
    fetcher: observedFetcher(resources.use(new WorkerFetcher(parts.upstream)), { metrics, tracer }),
    verifier: resources.use(new WorkerVerifier()),
  };
  const uses = resources.use(new Uses({ metadata, nowMs, log }));
  const reads = new ActiveReads();
  const space = buildSpace(parts, { reads, flushUses: () => uses.flush() });
  const attempts = { candidates, logging: { pool, demotions, log, metrics }, ...patience };
  const keeping = { metadata, nars, nowMs, owner: stores.space.owner };
  const downloads = new Downloads({
    attempts,
    transfer: { ...workers, keeping, tracer },
    space: telemetry.tracer ? tracedSpace(space, tracer) : space,
    reads,
    tempFolder,
  });
  const transfers = new PassThroughTransfers(nowMs);
  const underWay = allUnderWay([downloads, transfers]);
  metrics.gauge("in_flight_downloads", {}, () => underWay.count);
  const learning = { pool, metadata, signer: createSigner(identity.secretKey), nowMs };
  const sinks = new SinkFetcher({ narSources, ...patience });
  const { verifier } = workers;
  const passThrough = {
    attempts,
    sinks: observedFetcher(sinks, { metrics, tracer }),
    transfers,
    verifier,
    tracer,
  };
  return {
    pool,
    lastAnswers,
    downloads,
    underWay,
    space,
    reads,
    uses,
    remover: buildRemover(parts, space, reads),
    narinfos: new NarinfoServer({ learning, negative, demotions, uses, log }),
    nars: new NarServer({
      kept: buildKeptNars(parts, { downloads, space }),
      downloads,
      passThrough,
      uses,
      reads,
      archives: new ArchiveServer({ documents: metadata, narSources, passThrough }),
      sizes: { candidates, narSources, ...patience },
    }),
    documents: buildDocuments(parts, { ...upstreams, negative: absentDocuments, uses }),
  };
}

function buildUpstreams(
  parts: AppParts,
  metrics: Metrics,
  resources: AsyncDisposableStack,
  cameBack: () => void,
) {
  const { settings: all, caCertificates, trustedKeys, requireSignature, trace } = parts.upstream;
  const { log, tracer } = parts.telemetry;
  const client = createUpstreamClient(caCertificates);
  resources.defer(() => client.close());
  const keys = new TrustedKeys(trustedKeys);
  const upstreamLog = createUpstreamLog(log);
  const lastAnswers = new LastAnswers(parts.nowMs);
  const pool = resources.use(
    new UpstreamPool({
      upstreams: all.map((settings) => {
        const deps = { settings, client, keys, requireSignature, trace };
        const source = new HttpNarinfoSource(deps);
        const metered = meteredNarinfoSource(source, metrics);
        const asked = tracer ? tracedNarinfoSource(metered, tracer) : metered;
        // Outermost: waiting for a turn is no latency of the upstream.
        const limitMs = Math.max(settings.dialTimeoutMs, settings.headerTimeoutMs);
        return queuedNarinfoSource(asked, { limitMs, log });
      }),
      observe(upstream, reading, requestId) {
        upstreamLog.reading(upstream, reading, requestId);
        lastAnswers.note(upstream, reading);
        if (reading.kind !== "failed" || !Object.hasOwn(REFUSED, reading.reason)) return;
        const reason = REFUSED[reading.reason as keyof typeof REFUSED];
        metrics.count("verification_failures_total", { reason });
      },
      unanswered: upstreamLog.unanswered,
      changed(upstream, isDown) {
        upstreamLog.changed(upstream, isDown);
        if (!isDown) cameBack();
      },
    }),
  );
  for (const { url } of all) {
    const isUp = () => pool.statuses().some((status) => status.url === url && status.isUp);
    metrics.gauge("upstream_up", { upstream: url }, () => Number(isUp()));
    metrics.histogram("upstream_request_duration_seconds", { upstream: url, result: "found" });
  }
  metrics.gauge(
    "upstream_count_healthy",
    {},
    () => pool.statuses().filter(({ isUp }) => isUp).length,
  );
  metrics.gauge("upstream_count_total", {}, () => all.length);
  const narSources = new Map(
    all.map((settings) => {
      const source = new HttpNarSource({ settings, client, trace });
      return [settings.url, tracer ? tracedNarSource(source, tracer) : source];
    }),
  );
  const observe = upstreamLog.reading;
  return { pool, narSources, lastAnswers, client, observe };
}

/** Readings that are counted as verification failures, by what was wrong. */
const REFUSED = { untrusted: "signature", garbage: "narinfo" } as const;
