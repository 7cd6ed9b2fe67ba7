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
import type { MetadataStore } from "../metadata/metadata_store.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import type { PublicKey, SecretKey } from "../nix/signature.ts";
import { TrustedKeys } from "../nix/trusted_keys.ts";
import { ActiveReads } from "../space/active_reads.ts";
import { gcEvents } from "../space/gc_events.ts";
import type { Space } from "../space/space.ts";
import { type ClosureLister, PinnedClosures } from "../pins/pinned_closures.ts";
import { Pins } from "../pins/pins.ts";
import type { NarStore } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { RecentProblems } from "../telemetry/recent_problems.ts";
import { NO_TRACER, type Tracer } from "../telemetry/tracer.ts";
import { createUpstreamClient } from "../upstream/http/http_client.ts";
import { HttpNarinfoSource } from "../upstream/http/http_narinfo_source.ts";
import { HttpNarSource } from "../upstream/http/http_nar_source.ts";
import type { CaCertificates, HttpUpstreamSettings } from "../upstream/http/http_settings.ts";
import { LastAnswers } from "../upstream/last_answers.ts";
import type { UpstreamTrace } from "../upstream/http/upstream_trace.ts";
import { meteredNarinfoSource } from "../upstream/metered_narinfo_source.ts";
import { queuedNarinfoSource } from "../upstream/queued_narinfo_source.ts";
import { tracedNarSource } from "../upstream/traced_nar_source.ts";
import { tracedNarinfoSource } from "../upstream/traced_narinfo_source.ts";
import { createUpstreamLog } from "../upstream/upstream_log.ts";
import { UpstreamPool } from "../upstream/upstream_pool.ts";
import { buildDocuments } from "./build_documents.ts";
import { buildKeptNars } from "./build_kept_nars.ts";
import { buildPage } from "./build_page.ts";
import { buildRemover, buildSpace, type SpaceParts } from "./build_space.ts";
import { narPatience } from "./upstream_settings.ts";
import { tracedSpace } from "./traced_stores.ts";
import { WorkerFetcher } from "./workers/worker_fetcher.ts";
import { WorkerVerifier } from "./workers/worker_verifier.ts";

export interface AppParts {
  readonly metadata: MetadataStore;
  readonly nars: NarStore;
  /** Where pinned closures are counted beside this thread; else they are on it. */
  readonly closures?: ClosureLister;
  readonly tempFolder: string;
  readonly upstreams: readonly HttpUpstreamSettings[];
  readonly caCertificates: CaCertificates;
  readonly trustedKeys: readonly PublicKey[];
  readonly requireSignature: boolean;
  /** `undefined` signs nothing. */
  readonly secretKey: SecretKey | undefined;
  readonly priority: number;
  readonly negativeTtlMs: number;
  readonly space: SpaceParts;
  /** Whether clients may remove narinfos and NARs. */
  readonly allowDelete: boolean;
  readonly log: Logger;
  /** What `log` was told of late. */
  readonly problems: Pick<RecentProblems, "list">;
  readonly metrics: Metrics;
  /** Whether `/metrics` is answered. */
  readonly hasMetricsRoute: boolean;
  /** False where nobody looks at the figures of single requests. */
  readonly countsRequests: boolean;
  /** Names of this cache, without ports. */
  readonly ownNames: readonly string[];
  /** Whether clients reach it by HTTPS without a proxy. */
  readonly usesTls: boolean;
  /** `undefined` where nothing is traced. */
  readonly tracer: Tracer | undefined;
  /** What requests to upstreams have to do with traces. */
  readonly upstreamTrace?: UpstreamTrace | undefined;
  readonly nowMs: () => number;
}

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
  /** Resolves when no download is under way. */
  downloadsOver(): Promise<void>;
}

/** Wires the cache to its back ends. The caller keeps and closes the stores. */
export function buildApp(parts: AppParts): App {
  const resources = new AsyncDisposableStack();
  const { metrics, log } = parts;
  const cache = buildCache(parts, metrics, resources);
  const { narinfos, nars, documents, downloads, space, reads, remover } = cache;
  const closures = resources.use(parts.closures ?? new PinnedClosures(parts));
  const names = new StorePathNames(parts);
  const page = buildPage(parts, { ...cache, closures, names });
  const pinsChanged = () => {
    page.pinsChanged();
    void space.altered();
  };
  const pins = new Pins({ ...parts, changed: pinsChanged });
  let ready = true;
  const routes = [
    nixCacheInfoRoute(parts.priority),
    pubkeyRoute(parts.secretKey?.publicKey.text),
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
    ...parts.hasMetricsRoute ? [metricsRoute(metrics)] : [],
  ];
  const httpMetrics = parts.countsRequests ? new HttpMetrics(metrics, routes) : undefined;
  const observer = new RequestObserver({
    metrics: httpMetrics,
    log,
    scheme: parts.usesTls ? "https" : "http",
  });
  return {
    pipeline: createRequestPipeline({
      router: new Router(routes),
      access: new AccessRules(parts),
      observer,
      tracer: parts.tracer,
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
  const { metadata, nars, log, nowMs, tempFolder, tracer = NO_TRACER } = parts;
  const negative = new NegativeCache(parts.negativeTtlMs);
  const absentDocuments = new NegativeCache<DocumentPath>(parts.negativeTtlMs);
  const upstreams = buildUpstreams(parts, metrics, resources, () => {
    negative.clear();
    absentDocuments.clear();
  });
  const { pool, narSources, lastAnswers } = upstreams;
  const demotions = new Demotions();
  const candidates = { metadata, pool, demotions };
  const patience = narPatience(parts.upstreams);
  const workers = {
    fetcher: observedFetcher(resources.use(new WorkerFetcher(parts)), { metrics, tracer }),
    verifier: resources.use(new WorkerVerifier()),
  };
  const uses = resources.use(new Uses({ metadata, nowMs, log }));
  const reads = new ActiveReads();
  const space = buildSpace(parts, { reads, flushUses: () => uses.flush() });
  const attempts = { candidates, logging: { pool, demotions, log, metrics }, ...patience };
  const keeping = { metadata, nars, nowMs, owner: parts.space.owner };
  const downloads = new Downloads({
    attempts,
    transfer: { ...workers, keeping, tracer },
    space: parts.tracer ? tracedSpace(space, tracer) : space,
    reads,
    tempFolder,
  });
  const transfers = new PassThroughTransfers(nowMs);
  const underWay = allUnderWay([downloads, transfers]);
  metrics.gauge("in_flight_downloads", {}, () => underWay.count);
  const learning = { pool, metadata, signer: createSigner(parts.secretKey), nowMs };
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
  const { caCertificates, trustedKeys, requireSignature, log, tracer } = parts;
  const { upstreamTrace: trace } = parts;
  const client = createUpstreamClient(caCertificates);
  resources.defer(() => client.close());
  const keys = new TrustedKeys(trustedKeys);
  const upstreamLog = createUpstreamLog(log);
  const lastAnswers = new LastAnswers(parts.nowMs);
  const pool = resources.use(
    new UpstreamPool({
      upstreams: parts.upstreams.map((settings) => {
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
  for (const { url } of parts.upstreams) {
    const isUp = () => pool.statuses().some((status) => status.url === url && status.isUp);
    metrics.gauge("upstream_up", { upstream: url }, () => Number(isUp()));
    metrics.histogram("upstream_request_duration_seconds", { upstream: url, result: "found" });
  }
  metrics.gauge(
    "upstream_count_healthy",
    {},
    () => pool.statuses().filter(({ isUp }) => isUp).length,
  );
  metrics.gauge("upstream_count_total", {}, () => parts.upstreams.length);
  const narSources = new Map(
    parts.upstreams.map((settings) => {
      const source = new HttpNarSource({ settings, client, trace });
      return [settings.url, tracer ? tracedNarSource(source, tracer) : source];
    }),
  );
  const observe = upstreamLog.reading;
  return { pool, narSources, lastAnswers, client, observe };
}

/** Readings that are counted as verification failures, by what was wrong. */
const REFUSED = { untrusted: "signature", garbage: "narinfo" } as const;
