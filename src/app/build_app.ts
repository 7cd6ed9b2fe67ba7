import { Demotions, NarPaces } from "../cache/sources/nar_candidates.ts";
import { namedLog, PathRecord, StorePathNames } from "../cache/nar/store_path_names.ts";
import { allInFlight, type InFlight, observedFetcher } from "../cache/fetch/nar_fetcher.ts";
import denoJson from "../../deno.json" with { type: "json" };
import { MemoryAllowance } from "../base/memory_allowance.ts";
import type { ReadTurns } from "../base/read_turns.ts";
import { documentBytesMax } from "../cache/documents/document_bytes.ts";
import { DocumentServer } from "../cache/documents/serve_document.ts";
import { Downloads } from "../cache/download/downloads.ts";
import { Explainer } from "../cache/explain/explainer.ts";
import { SinkFetcher, type SinkFetcherDeps } from "../cache/fetch/sink_fetcher.ts";
import { NarForms } from "../cache/forms/nar_forms.ts";
import { formerNames } from "../cache/forms/recompressed.ts";
import { KeptNars } from "../cache/kept/kept_nars.ts";
import { tryStoring } from "../cache/nar/try_storing.ts";
import { NarinfoFetches } from "../cache/narinfo/narinfo_fetches.ts";
import {
  createSigner,
  NarinfoRefresh,
  NarinfoServer,
  NegativeCache,
} from "../cache/narinfo/serve_narinfo.ts";
import { NO_PREFETCH } from "../cache/prefetch/prefetch_ports.ts";
import { PassThroughTransfers } from "../cache/pass_through/pass_through_transfers.ts";
import { PinLooks } from "../cache/pinned/pin_looks.ts";
import { Planner } from "../cache/plan/planner.ts";
import { Prefetch } from "../cache/prefetch/prefetch.ts";
import { Recompression } from "../cache/recompress/recompression.ts";
import { Remover } from "../cache/remove.ts";
import { MemberNarServer } from "../cache/serve_member.ts";
import { MemberDownloads } from "../cache/serve_member_download.ts";
import { NarServer, type NarServerDeps, UnnamedNarServer } from "../cache/serve_nar.ts";
import { narTimeouts } from "../cache/sources/nar_attempts.ts";
import { Touches } from "../cache/touches.ts";
import { DocumentUploads } from "../cache/upload/document_uploads.ts";
import { NarUploads } from "../cache/upload/nar_uploads.ts";
import { NarinfoUploads, openForPush, UploadTrust } from "../cache/upload/narinfo_uploads.ts";
import { SignedPaths } from "../cache/upload/signed_paths.ts";
import { expireStagedNars } from "../cache/upload/stage_nar.ts";
import { StoredView } from "../cache/upload/stored_view.ts";
import { decodingWith } from "../cache/verify/decode_encoded.ts";
import { DecodedNars } from "../cache/verify/decoded_nars.ts";
import { type Counters, History, type HistoryReader } from "../history/history.ts";
import { Pulls } from "../history/pulls.ts";
import { AccessRules } from "../http/access/access_rules.ts";
import type { Page, PageSource } from "../http/page/page.ts";
import { HttpMetrics, RequestObserver } from "../http/pipeline/request_observer.ts";
import { createRequestPipeline, type RequestPipeline } from "../http/pipeline/request_pipeline.ts";
import { clientConfigRoute } from "../http/routes/client_config.ts";
import { documentRoutes } from "../http/routes/documents.ts";
import { explainRoute } from "../http/routes/explain.ts";
import {
  HEALTHZ_ROUTE,
  nixCacheInfoRoute,
  pubkeyRoute,
  readyzRoute,
} from "../http/routes/fixed_answers.ts";
import { gcRoute } from "../http/routes/gc.ts";
import { metricsRoute } from "../http/routes/metrics.ts";
import { narRoute } from "../http/routes/nar.ts";
import { narinfoRoute } from "../http/routes/narinfo.ts";
import { pageRoute, SIGN_IN_ROUTE } from "../http/routes/page.ts";
import { pageActionRoutes } from "../http/routes/page_actions.ts";
import { pinNamesRoute } from "../http/routes/pin_names.ts";
import { pinnedClosuresRoute, pinRoute, pinsRoute, verifyPinsRoute } from "../http/routes/pins.ts";
import { planRoute, planTurns } from "../http/routes/plan.ts";
import { pullRoutes } from "../http/routes/pulls.ts";
import { type Route, Router } from "../http/routes/router.ts";
import { Searches } from "../http/routes/searches.ts";
import { statsRoute } from "../http/routes/stats.ts";
import { uploadDocumentRoutes } from "../http/routes/upload/upload_documents.ts";
import { uploadNarRoute } from "../http/routes/upload/upload_nar.ts";
import { uploadNarinfoRoute } from "../http/routes/upload/upload_narinfo.ts";
import { type MemberFigureSources, MemberGatherer } from "../http/stats/gather_member.ts";
import {
  gatherStats,
  requestStats,
  type StatsQuery,
  trafficStats,
} from "../http/stats/gather_stats.ts";
import { MemberReports } from "../http/stats/member_reports.ts";
import { NO_OTHER_MEMBERS } from "../locks/work_leases.ts";
import { type NameFinder, signedPathsMax } from "../metadata/metadata_store.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import { type NarName, parseNarName } from "../nix/nar_name.ts";
import { isStorePathHash, nameOfBaseName, type StorePathHash } from "../nix/store_path.ts";
import { TrustedKeys } from "../nix/trusted_keys.ts";
import { PinReads, Pins } from "../pins/pins.ts";
import { PinWatch } from "../pins/pin_watch.ts";
import { type ClosureLister, PinnedClosures } from "../pins/pinned_closures.ts";
import { clock } from "../runtime/current.ts";
import type { HttpClient } from "../runtime/net.ts";
import { ActiveReads } from "../space/active_reads.ts";
import { assembleSpace } from "../space/assemble_space.ts";
import type { RunFigures } from "../space/evictor.ts";
import { gcEvents, type GcOrder } from "../space/gc_event.ts";
import type { Space } from "../space/space.ts";
import { MEMBER_STATES } from "../telemetry/instruments/operation_labels.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { NO_TRACER, traced, type Tracer } from "../telemetry/tracer.ts";
import { AskedUpstreams } from "../upstream/asked_upstreams.ts";
import { DocumentPool } from "../upstream/document_pool.ts";
import {
  answerTimeoutOf,
  createUpstreamClient,
  type HttpUpstreamSettings,
  traceWith,
} from "../upstream/http/upstream_fetch.ts";
import { HttpDocumentSource } from "../upstream/http/http_document_source.ts";
import { HttpNarSource } from "../upstream/http/http_nar_source.ts";
import {
  HttpNarinfoFetcher,
  HttpNarinfoSource,
  type UpstreamRoot,
} from "../upstream/http/http_narinfo_source.ts";
import type { NarinfoFetcher } from "../upstream/http/narinfo_fetcher.ts";
import { LastAnswers } from "../upstream/last_answers.ts";
import { Loops } from "../upstream/loops.ts";
import { NarRates, type RivalWait } from "../upstream/pooled_upstream.ts";
import type { DecodeBody } from "../upstream/upstream.ts";
import { createUpstreamLog, EmptyRoots } from "../upstream/upstream_log.ts";
import { type StartProbe, UpstreamPool } from "../upstream/upstream_pool.ts";
import { queuedDocumentSource, queuedNarinfoSource } from "../upstream/upstream_queue.ts";
import {
  meteredNarinfoSource,
  tracedDocumentSource,
  tracedNarinfoSource,
  tracedNarSource,
} from "../upstream/watched_sources.ts";
import type { AppParts, StoreParts } from "./app_parts.ts";
import { MemberSources } from "./member_sources.ts";
import { WorkerEncoder } from "./workers/worker_encoder.ts";
import { WorkerFetcher } from "./workers/worker_fetcher.ts";
import { WorkerNarinfos } from "./workers/worker_narinfos.ts";
import { WorkerVerifier } from "./workers/worker_verifier.ts";

/** Everything but the socket. */
export interface App extends AsyncDisposable {
  /** Answers one request; never rejects. */
  readonly pipeline: RequestPipeline;
  /** Finds out in the background which upstreams answer. */
  probeUpstreams(): Promise<readonly StartProbe[]>;
  /** Starts the Workers of NARs ahead of the first one, which would wait for them. */
  prepareWorkers(): void;
  /** Makes `/readyz` answer 503. Call it as the shutdown begins. */
  stopping(): void;
  /** The NAR files' space: its accounts are read before anything is handled. */
  readonly space: Space;
  readonly reads: Pick<ActiveReads, "names">;
  readonly touches: Pick<Touches, "flush">;
  /** Resolves when no download is in flight that a client waits for. */
  downloadsOver(): Promise<void>;
  /** Whole files that other processes left: from now on larder requests none of them. */
  receive(paths: readonly string[]): Promise<void>;
  /** Verifies these files and those received before. */
  resume(paths: readonly string[]): Promise<void>;
  /** Resolves when no prefetch is in flight. */
  prefetchOver(): Promise<void>;
  /** Judges prefetched files without a request in time. */
  expirePrefetched(): void;
  /** The past of this storage. Start it once requests may come. */
  readonly history: Pick<History, "start">;
  readonly kept: Pick<KeptNars, "noteLost">;
  /** The free bytes of the storage's disk, as last seen. */
  readonly disk: { freeBytes: number | undefined };
  /** Writes this member's report, and reads those of the others. Never rejects. */
  reportToMembers(): Promise<void>;
  /** Removes uploaded NARs whose narinfo has not come in time. */
  expireUploads(): Promise<void>;
  /** Looks at the pinned closures that are due. Never rejects. */
  lookAtPins(): Promise<void>;
  /** Keeps in zstd what it can now, if the settings want it. Never rejects. */
  recompress(): Promise<void>;
  /** Tries again what failed, without a client. Never rejects. */
  probe(): Promise<void>;
}

/** Memory of all documents in flight; another such allowance is for those that come in. */
const MEMORY_BYTES_MAX = 64 << 20;

/** Wires the cache to its back ends. The caller keeps and closes the stores. */
export function buildApp(given: AppParts): App {
  const resources = new AsyncDisposableStack();
  const loops = loopsOf(given);
  const { names, paths, parts } = withNames(withWays(given, loops));
  const { stores, identity, telemetry } = parts;
  const { metrics } = telemetry;
  const waits = new AskedUpstreams();
  const cache = buildCache(parts, { names, paths, waits, loops }, resources);
  const { narinfos, nars, members, downloads, space, remover, prefetch } = cache;
  const uploads = buildUploads(parts, cache);
  const arriving = [cache.inFlight, uploads.inFlight];
  const recompression = buildRecompression(parts, cache, arriving, resources);
  const closures = stores.closures ?? new PinnedClosures(stores);
  const pinReads = resources.use(pinReadsOf(stores, closures));
  // What eviction may not take, less what is not there.
  const pinnedBytes = () => Math.max(0, space.budget.pinnedBytes - pinReads.lostBytes);
  metrics.gauge("pinned_bytes", {}, pinnedBytes);
  const history = buildHistory(parts, cache);
  const pulls = buildPulls(parts, { names, paths, waits });
  const disk = { freeBytes: undefined as number | undefined };
  let ready = true;
  const recompressedBytes = () => recompression?.counts.zstdBytes ?? 0;
  const planner = new Planner({ ...cache, metadata: stores.metadata, nowMs: parts.nowMs });
  const plans = resources.use(planTurns());
  const page = buildPage(parts, {
    ...{ cache, uploads: uploads.inFlight, waits, names, record: paths, pins: pinReads },
    figures: { disk, pinnedBytes, recompressedBytes },
    ...{ planner, plans, history, pulls, isDraining: () => !ready },
  });
  const pinLooks = resources.use(
    new PinLooks({
      ...{ ...cache, nowMs: parts.nowMs, log: telemetry.log },
      metadata: stores.metadata,
      leases: stores.leases ?? NO_OTHER_MEMBERS,
      ...{ closures, counts: pinReads },
      nameOf: async (path) => await names.ofPath(path) ?? paths.of(path).name,
      looked: () => page.pinsChanged(),
    }),
  );
  stores.whenArrived?.((arrived) => pinLooks.arrived(arrived));
  pinReads.whenCounted((closures) => pinLooks.counted(closures));
  cache.kept.whenLost((narName) => pinLooks.lost(narName));
  cache.kept.whenReturned((narName) => pinLooks.arrived({ storePaths: [], nars: [narName] }));
  const pinsChanged = () => {
    page.pinsChanged();
    void space.altered();
    void pinLooks.judge();
  };
  const keepsComplete = (root: StorePathHash) => pinLooks.want(root);
  const pins = new Pins({ ...stores, nowMs: parts.nowMs, changed: pinsChanged, keepsComplete });
  const routes = [
    nixCacheInfoRoute(identity.priority),
    pubkeyRoute(identity.secretKey?.publicKey.text),
    HEALTHZ_ROUTE,
    readyzRoute(() => ready),
    narinfoRoute({ narinfos, metrics, record: paths, ...remover.narinfos }),
    narRoute({
      ...{ nars, members, names, metrics, record: paths },
      ...{ handOver: stores.handOver, ...remover.nars },
    }),
    pinRoute(pins, names),
    ...operatingRoutes(pins, pinReads, space),
    pinsRoute(pinReads),
    pinnedClosuresRoute(pinReads),
    pinNamesRoute(pinReads, pins),
    verifyPinsRoute(pinLooks),
    ...page.routes,
    planRoute({ planner, turns: plans, log: telemetry.log }),
    ...documentRoutes(cache.documents),
    ...uploads.routes,
    ...telemetry.hasMetricsRoute ? [metricsRoute(metrics)] : [],
  ];
  return {
    pipeline: pipelineOf(parts, { routes, loops, pulls }),
    ...{ space, history, disk, reads: cache.reads, touches: cache.touches, kept: cache.kept },
    probeUpstreams: () => cache.pool.start(),
    prepareWorkers: () => cache.prepareWorkers(),
    stopping() {
      ready = false;
      prefetch?.stop();
      downloads.stopping();
      void pinLooks[Symbol.asyncDispose]();
      pinReads[Symbol.dispose]();
      page.stopping();
      plans[Symbol.dispose]();
      void page.reportToMembers();
    },
    reportToMembers: () => page.reportToMembers(),
    downloadsOver: () => downloads.wantedIdle(),
    receive: (paths) => downloads.receive(paths),
    resume: (paths) => downloads.resume(paths),
    prefetchOver: async () => await prefetch?.idle(),
    expirePrefetched: () => prefetch?.expire(),
    expireUploads: () => uploads.expire(),
    lookAtPins: () => pinLooks.run(),
    async recompress() {
      await recompression?.run();
    },
    async probe() {
      const { leases = NO_OTHER_MEMBERS } = stores;
      const failing = [narinfos, downloads, space, leases, cache.kept];
      await Promise.all(failing.map((part) => part.probe()));
    },
    async [Symbol.asyncDispose]() {
      prefetch?.stop();
      await history[Symbol.asyncDispose]();
      await pulls[Symbol.asyncDispose]();
      await resources.disposeAsync();
      await prefetch?.idle();
      await page[Symbol.asyncDispose]();
      await downloads.idle();
      await cache.kept.idle();
      await space[Symbol.asyncDispose]();
    },
  };
}

function loopsOf({ stores, upstream, telemetry: { log, metrics } }: AppParts): Loops {
  const upstreams = upstream.settings.map(({ url }) => url);
  return new Loops({ member: stores.space.owner, upstreams, metrics, log });
}

/** The same parts, whose requests to upstreams say on which way they came. */
function withWays(parts: AppParts, loops: Loops): AppParts {
  const trace = traceWith(parts.upstream.trace, () => loops.headers());
  return { ...parts, upstream: { ...parts.upstream, trace } };
}

function pipelineOf(
  { identity, telemetry, writes }: AppParts,
  { routes, loops, pulls }: {
    readonly routes: readonly Route[];
    readonly loops: Loops;
    readonly pulls: Pulls;
  },
): RequestPipeline {
  const { metrics, countsRequests, tracer, log } = telemetry;
  const observer = new RequestObserver({
    metrics: countsRequests ? new HttpMetrics(metrics, routes) : undefined,
    ...{ log, pulls },
    scheme: identity.usesTls ? "https" : "http",
  });
  const access = new AccessRules(identity, routes);
  const router = new Router(routes);
  const uploadHint = writes.uploads.allowed
    ? "upload below /upload, as in nix copy --to http://HOST/upload"
    : "upload below /upload, once larder has --cache-allow-put-verb";
  return createRequestPipeline({ router, access, observer, uploadHint, loops, tracer, log });
}

interface NameParts {
  readonly names: StorePathNames;
  readonly paths: PathRecord;
}

interface CacheParts extends NameParts {
  readonly waits: AskedUpstreams;
  readonly loops: Loops;
}

/** The same parts, whose log names the store path of each NAR. */
function withNames(parts: AppParts): NameParts & { parts: AppParts } {
  const { stores: { metadata }, telemetry } = parts;
  const paths = new PathRecord(parts.nowMs);
  const names = new StorePathNames({ metadata, log: telemetry.log, record: paths });
  return {
    ...{ names, paths },
    parts: { ...parts, telemetry: { ...telemetry, log: namedLog(telemetry.log, names) } },
  };
}

/** Without a count of the changes, nothing is shared beyond a moment. */
function pinReadsOf({ metadata, generation }: StoreParts, closures: ClosureLister): PinReads {
  let calls = 0;
  return new PinReads({
    metadata,
    closures,
    generation: generation ?? (() => ++calls),
  });
}

/** Pins and evictions, for programs and for the page. */
function operatingRoutes(pins: Pins, pinReads: PinReads, space: Space): readonly Route[] {
  const gc = (order: GcOrder) => gcEvents(space, order);
  return [gcRoute({ gc }), ...pageActionRoutes({ pins, pinReads, gc })];
}

/** What the rest of larder shares. */
type Cache = ReturnType<typeof buildCache>;

/** Wires the answers of the cache to the files and rows that they are made of. */
function buildCache(
  parts: AppParts,
  cacheParts: CacheParts,
  resources: AsyncDisposableStack,
) {
  const stock = buildStock(parts, cacheParts, resources);
  const { narinfos, narinfoFetches, prefetch } = buildNarinfos(parts, stock);
  return {
    ...stock,
    ...{ narinfos, narinfoFetches, prefetch },
    ...buildNars(parts, stock, narinfos, prefetch ?? NO_PREFETCH),
    documents: buildDocuments(parts, stock),
    remover: buildRemover(parts, stock),
  };
}

/** What answers are made of: upstreams, downloads, stored files, and their space. */
type Stock = ReturnType<typeof buildStock>;

function buildStock(
  parts: AppParts,
  { names, paths, waits, loops }: CacheParts,
  resources: AsyncDisposableStack,
) {
  const { nowMs, fetching: { negativeTtlMs }, telemetry, stores, runtime: { threads } } = parts;
  const { metadata, nars, spool, leases = NO_OTHER_MEMBERS } = stores;
  const { log, metrics, tracer = NO_TRACER } = telemetry;
  const negative = new NegativeCache(negativeTtlMs);
  const absentDocuments = new NegativeCache<DocumentPath>(negativeTtlMs);
  const absentNars = new NegativeCache<NarName>(negativeTtlMs);
  // Before the upstreams: their requests end before it does.
  const verifier = resources.use(new WorkerVerifier(threads, parts.fetching.verifyThreads));
  const decode = decodingWith(verifier);
  const upstreams = buildUpstreams(parts, { resources, paths, waits, loops, decode }, () => {
    negative.clear();
    absentDocuments.clear();
    absentNars.clear();
  });
  const { pool, rates } = upstreams;
  const demotions = new Demotions();
  const nameOf = (narName: NarName) => names.of(narName);
  const candidates = { metadata, pool, demotions, nameOf };
  const timeouts = narTimeouts(parts.upstream.settings);
  const fetcher = resources.use(new WorkerFetcher({ ...parts.upstream, threads }));
  const workers = { fetcher: observedFetcher(fetcher, { metrics, tracer, rates }), verifier };
  const touches = resources.use(new Touches({ metadata, nowMs, log }));
  const reads = new ActiveReads();
  const space = buildSpace(parts, { reads, touches });
  const paces = resources.use(
    new NarPaces({
      noted: ({ nar, ...pace }) => paths.paced(nar, pace),
      slow: (pace) => upstreams.sends({ ...pace, path: names.known(pace.nar) ?? pace.nar }),
      over: upstreams.sendsNoMore,
    }),
  );
  const logging = { pool, demotions, log, metrics, record: paths, paces, waits };
  const attempts = { candidates, logging, ...timeouts };
  const keeping = { metadata, nars, nowMs, owner: stores.space.owner };
  const replacesSoon = parts.fetching.recompress !== undefined && !sparesUsed(stores);
  const decoded = replacesSoon ? new DecodedNars() : undefined;
  const downloads = new Downloads({
    attempts,
    transfer: { ...workers, keeping, tracer, decoded },
    space: telemetry.tracer ? tracedSpace(space, tracer) : space,
    ...{ reads, pool, leases, loops },
    trials: {
      store: (bytes) => tryStoring({ metadata, nars, folder: spool.path }, bytes),
      fits: (bytes) => space.fits(bytes),
    },
    files: {
      spoolFolder: spool.path,
      claim: (path) => spool.claim?.(path),
      verifyThreads: parts.fetching.verifyThreads,
    },
  });
  metrics.gauge("verification_backlog_files", {}, () => downloads.backlog().files);
  metrics.gauge("verification_backlog_bytes", {}, () => downloads.backlog().bytes);
  metrics.gauge("verification_backlog_seconds", {}, () => downloads.backlog().oldestMs / 1_000);
  const transfers = new PassThroughTransfers(nowMs);
  const inFlight = allInFlight([downloads, transfers]);
  metrics.gauge("in_flight_downloads", {}, () => inFlight.count);
  const kept = buildKeptNars(parts, { downloads, space });
  const forms = new NarForms({ verifier, metadata, nowMs, log });
  return {
    ...upstreams,
    ...{ names, loops, negative, absentDocuments, absentNars, demotions, attempts, touches, reads },
    ...{ space, downloads, transfers, inFlight, kept, forms, verifier, decoded },
    prepareWorkers() {
      // Without upstreams the Workers would waste 30 MB. The first upload starts its own.
      if (pool.isEmpty) return;
      fetcher.prepare();
      // Starting a Worker stops this thread for some 25 ms. Requests have their turn in between.
      clock.after(0, () => verifier.prepare());
    },
  };
}

/** Wires the cache of listings, logs, realisations and debuginfo. */
function buildDocuments(
  parts: AppParts,
  { client, pool, observe, waited, loops, touches, verifier, absentDocuments }: Stock,
): DocumentServer {
  const { metadata, space } = parts.stores;
  const { log, tracer } = parts.telemetry;
  const sources = new Map(parts.upstream.settings.map((settings) => {
    const source = new HttpDocumentSource({ settings, client, trace: parts.upstream.trace });
    const traced = tracer ? tracedDocumentSource(source, tracer) : source;
    const limitMs = Math.max(settings.dialTimeoutMs, answerTimeoutOf(settings));
    return [settings.url, queuedDocumentSource(traced, { limitMs, log })];
  }));
  return new DocumentServer({
    ...{ loops, touches, decoder: verifier, negative: absentDocuments },
    ...{ metadata, nowMs: parts.nowMs, log },
    pool: new DocumentPool({ sources, pool, observe, waited }),
    allowance: new MemoryAllowance(MEMORY_BYTES_MAX),
    totalBytesMax: () => documentBytesMax(space.limit.bytes),
  });
}

/** Wires the past of this storage to the counters of this process. */
function buildHistory(parts: AppParts, { space, inFlight }: Cache): History {
  const { nowMs, stores: { metadata }, telemetry: { log, metrics, members } } = parts;
  return new History({
    keeper: metadata,
    counters: () => countersOf(metrics),
    storedBytes: () => space.budget.usedBytes,
    inFlight: () => inFlight.count,
    nowMs,
    log,
    hasOthers: members?.isShared ?? false,
  });
}

function countersOf(metrics: Pick<Metrics, "value">): Counters {
  const [narinfo, nar] = [requestStats(metrics, "narinfo"), requestStats(metrics, "nar")];
  const { served_bytes, upstream_bytes: fetched_bytes, saved_bytes } = trafficStats(metrics);
  return {
    narinfo_hits: narinfo.hits + narinfo.joined,
    narinfo_misses: narinfo.misses + narinfo.prefetched,
    nar_hits: nar.hits + nar.joined,
    nar_misses: nar.misses + nar.prefetched,
    absent: narinfo.absent + nar.absent,
    ...{ served_bytes, fetched_bytes, saved_bytes },
    evicted_bytes: metrics.value("evicted_bytes_total", {}),
    evicted_entries: metrics.value("evicted_entries_total", {}),
  };
}

/** Wires narinfos, and the prefetch for the clients that request them. */
function buildNarinfos(parts: AppParts, stock: Stock) {
  const { nowMs, fetching, stores: { metadata, leases, storedPaths: stored } } = parts;
  const { log, metrics } = parts.telemetry;
  const { pool, negative, demotions, touches, downloads, kept, space, names, loops } = stock;
  const signer = createSigner(parts.identity.secretKey);
  const narinfoFetches = new NarinfoFetches({
    ...{ metadata, names, pool, signer, nowMs, leases, loops, log },
    memory: { negative, demotions },
    signedPathsMax: () => signedPathsMax(parts.stores.space.limit.bytes),
  });
  const prefetch = fetching.prefetch && new Prefetch({
    narinfos: { narinfoFetches, metadata, negative, pool },
    nars: {
      ...{ metadata, downloads, pool },
      hasRoom: (fileSize) => space.hasSpare(fileSize),
      fileBytesMax: fetching.prefetch.narBytesMax,
    },
    metrics,
    nowMs,
  });
  const refreshMs = fetching.narinfoRefreshMs;
  const narinfos = new NarinfoServer({
    rows: { metadata, signer },
    ...{ stored, kept, narinfoFetches, negative, demotions, touches, loops, nowMs, log },
    refresh: new NarinfoRefresh({ pool, metadata, refreshMs, nowMs, log }),
    isUpstream: (url) => pool.has(url),
    prefetch: prefetch ?? NO_PREFETCH,
  });
  return { narinfos, narinfoFetches, prefetch };
}

/** Wires the pulls of clients to the names of paths, and to the requests to upstreams. */
function buildPulls(
  { stores: { metadata }, telemetry: { log } }: AppParts,
  { names, paths, waits }: Pick<CacheParts, "names" | "paths" | "waits">,
): Pulls {
  return new Pulls({
    keeper: metadata,
    log,
    async nameOf(text) {
      if (isStorePathHash(text)) return await names.ofPath(text) ?? paths.of(text).name;
      const narName = parseNarName(text);
      for (const one of narName === undefined ? [] : [narName, ...formerNames(narName)]) {
        const name = await names.of(one);
        if (name !== undefined) return name;
      }
      return undefined;
    },
    waitsOf: (name, fromMs, toMs) => waits.between(name, fromMs, toMs),
    askedUntil: (name) => waits.endOf(name),
  });
}

/** A store without open files, and readers that this member does not see. */
function sparesUsed({ leases, space: { graceMs = 0 } }: StoreParts): boolean {
  return graceMs > 0 || leases !== undefined;
}

/** Wires the background job that keeps files in zstd; `undefined` where the settings want none. */
function buildRecompression(
  parts: AppParts,
  { kept, verifier, decoded, space, reads, downloads, forms }: Cache,
  inFlight: readonly InFlight[],
  resources: AsyncDisposableStack,
): Recompression | undefined {
  const { stores, fetching: { recompress }, telemetry: { metrics, log }, nowMs } = parts;
  if (recompress === undefined) return undefined;
  const { metadata, nars, spool, leases, space: { owner } } = stores;
  const encoder = recompress.encoder ?? resources.use(new WorkerEncoder(parts.runtime.threads));
  const recompression = resources.use(
    new Recompression({
      ...{ kept, verifier, decoded, space, reads, downloads, encoder },
      publishing: { metadata, nars, nowMs, owner },
      leases: leases ?? NO_OTHER_MEMBERS,
      sparesUsed: sparesUsed(stores),
      isIdle: () =>
        downloads.backlog().files === 0 && !forms.isBusy &&
        inFlight.every(({ count }) => count === 0),
      folder: spool.path,
      level: recompress.level,
      ...{ metrics, log },
    }),
  );
  metrics.gauge("recompress_backlog_files", {}, () => recompression.counts.backlogFiles);
  metrics.gauge("recompressed_kept_bytes", {}, () => recompression.counts.zstdBytes);
  return recompression;
}

/** Wires the upstreams: their narinfos, their NARs, and their health. */
function buildUpstreams(
  parts: AppParts,
  { resources, paths, waits, loops, decode }: {
    readonly resources: AsyncDisposableStack;
    readonly paths: PathRecord;
    readonly waits: AskedUpstreams;
    readonly loops: Pick<Loops, "described">;
    readonly decode: DecodeBody;
  },
  cameBack: () => void,
) {
  const { settings: all, caCertificates, trace } = parts.upstream;
  const { log, tracer, metrics } = parts.telemetry;
  const client = resources.use(createUpstreamClient(parts.runtime.net, caCertificates));
  const lastAnswers = new LastAnswers(
    parts.nowMs,
    (upstream) =>
      all.some(({ url, authorization }) => url === upstream && authorization !== undefined),
  );
  const upstreamLog = createUpstreamLog({ log, lastAnswers, nowMs: parts.nowMs });
  const roots = new EmptyRoots(log);
  const rates = new NarRates();
  const waited = (upstream: string, path: string, wait: RivalWait) => {
    const isSlow = lastAnswers.waited(upstream, path, wait);
    const hint = () => {
      const worst = Math.max(0, ...pool.statuses().map(({ priority = 0 }) => priority));
      return `lower its priority: --cache-upstream-url '${upstream}?priority=${worst + 10}', ` +
        "or remove it";
    };
    upstreamLog.waited({ upstream, path, ms: wait.ms, hint }, isSlow);
    return isSlow;
  };
  const answered = (upstream: string, path: string, tookMs: number | undefined) => {
    const hint = () => `take --cache-upstream-url ${upstream} out, or name a nearer mirror there`;
    const isSlow = lastAnswers.answered(upstream, path, tookMs);
    upstreamLog.answered({ upstream, path, ms: tookMs ?? 0, hint }, isSlow);
    return isSlow;
  };
  const sends = (
    { upstream, path, nar, ms, bytesPerSecond }: {
      readonly upstream: string;
      readonly path: string;
      readonly nar: NarName;
      readonly ms: number;
      readonly bytesPerSecond: number;
    },
  ) => {
    lastAnswers.sends(upstream, { path, ms: Math.round(ms), bytesPerSecond });
    const hint = () =>
      "check this machine's line; else name a nearer mirror in place of " +
      `--cache-upstream-url ${upstream}`;
    upstreamLog.sends({ upstream, path, nar, ms, bytesPerSecond, hint });
  };
  const shown = (path: StorePathHash) => paths.of(path).name ?? path;
  // Before the pool: its requests end before the Worker does.
  const fetcherOf = narinfoFetchers(parts, { client, decode, resources });
  const pool = resources.use(
    new UpstreamPool({
      upstreams: all.map((settings) => {
        const busy = () => pool.busy(settings.url);
        const fetcher = fetcherOf(settings);
        const described = ({ hasInfo, isLarder }: UpstreamRoot) => {
          loops.described(settings.url, isLarder);
          roots.described(settings.url, hasInfo);
        };
        const parts = { settings, client, fetcher, decode, trace, described, busy };
        const source = new HttpNarinfoSource(parts);
        const metered = meteredNarinfoSource(source, metrics, lastAnswers);
        const traced = tracer ? tracedNarinfoSource(metered, tracer) : metered;
        // Outermost: waiting for a turn is no latency of the upstream.
        const limitMs = Math.max(settings.dialTimeoutMs, answerTimeoutOf(settings));
        return queuedNarinfoSource(traced, { limitMs, timeoutMs: settings.headerTimeoutMs, log });
      }),
      waits,
      observe(upstream, reading, { storePathHash, requestId, rank }) {
        if (rank === "client") upstreamLog.reading(upstream, reading, requestId);
        else if (reading.kind === "failed") {
          const { reason, detail } = reading;
          log.debug("narinfo not prefetched", { upstream, reason, detail });
        }
        lastAnswers.note(upstream, reading);
        roots.note(upstream, reading);
        const result = reading.kind === "failed" ? reading.reason : reading.kind;
        const name = reading.kind === "found"
          ? nameOfBaseName(reading.narinfo.baseName)
          : undefined;
        const { status, wrongKey } = reading.kind === "failed" ? reading : {};
        const tookMs = reading.kind === "failed" ? undefined : reading.tookMs;
        const answer = {
          ...{ upstream, result, ...status === undefined ? {} : { status } },
          ...wrongKey === undefined ? {} : { wrongKey },
          ...tookMs === undefined ? {} : { tookMs },
        };
        paths.answered(storePathHash, answer, name);
        if (rank === "client" && reading.kind !== "failed") {
          const isSlow = answered(
            upstream,
            tookMs === undefined ? "" : shown(storePathHash),
            tookMs,
          );
          if (isSlow && tookMs !== undefined) pool.noteSlow(upstream, storePathHash);
        }
        const reason = reading.kind === "failed" ? reading.differs : undefined;
        if (reason !== undefined) metrics.count("verification_failures_total", { reason });
      },
      waited(upstream, storePathHash, wait) {
        const isWait = wait.ms > 0 || wait.isLate;
        const isSlow = waited(upstream, isWait ? shown(storePathHash) : "", wait);
        if (isWait) paths.waited(storePathHash, upstream, wait);
        return isSlow;
      },
      askedAgain(upstream, reading) {
        upstreamLog.reading(upstream, reading);
        lastAnswers.note(upstream, reading);
      },
      quick(upstream) {
        lastAnswers.quick(upstream);
        const nothing = { upstream, path: "", ms: 0, hint: () => "" };
        upstreamLog.waited(nothing, false);
        upstreamLog.answered(nothing, false);
      },
      observeNar(upstream, reading) {
        upstreamLog.reading(upstream, reading);
        lastAnswers.noteNar(upstream, reading);
      },
      skipped: (upstream, storePathHash) =>
        paths.answered(storePathHash, { upstream, result: "down" }),
      noted: upstreamLog.noted,
      changed(upstream, isDown, kind) {
        upstreamLog.changed(upstream, isDown, kind);
        if (!isDown) cameBack();
      },
    }),
  );
  measureUpstreams(pool, metrics);
  const narClients = new Map(
    all.map((settings) => {
      const source = new HttpNarSource({ settings, client, trace });
      return [settings.url, tracer ? tracedNarSource(source, tracer) : source];
    }),
  );
  const observe = upstreamLog.reading;
  const { sendsNoMore } = upstreamLog;
  return { pool, narClients, lastAnswers, rates, client, observe, waited, sends, sendsNoMore };
}

/** Fetchers that share one Worker. */
function narinfoFetchers(
  { upstream, identity: { secretKey }, telemetry: { log }, runtime: { threads } }: AppParts,
  { client, decode, resources }: {
    readonly client: HttpClient;
    readonly decode: DecodeBody;
    readonly resources: AsyncDisposableStack;
  },
): (settings: HttpUpstreamSettings) => NarinfoFetcher {
  const { requireSignature } = upstream;
  const keys = new TrustedKeys(upstream.trustedKeys);
  const worker = resources.use(new WorkerNarinfos({ ...upstream, secretKey, log, threads }));
  return (settings) =>
    worker.over(
      settings.url,
      new HttpNarinfoFetcher({ settings, client, decode, keys, requireSignature }),
    );
}

/** Registers the upstreams' health, and their series before the first request. */
function measureUpstreams(pool: UpstreamPool, metrics: Metrics): void {
  for (const { url } of pool.statuses()) {
    const isUp = () =>
      pool.statuses().some((status) => status.url === url && status.isUp && status.sendsNars);
    metrics.gauge("upstream_up", { upstream: url }, () => Number(isUp()));
    metrics.histogram("upstream_request_duration_seconds", { upstream: url, result: "found" });
  }
  metrics.gauge(
    "upstream_count_healthy",
    {},
    () => pool.statuses().filter(({ isUp, sendsNars }) => isUp && sendsNars).length,
  );
  metrics.gauge("upstream_count_total", {}, () => pool.statuses().length);
}

/** Wires the size limit to the stores. */
function buildSpace(
  parts: AppParts,
  { reads, touches }: {
    readonly reads: ActiveReads;
    readonly touches: Pick<Touches, "flush">;
  },
) {
  const {
    nowMs,
    stores: { metadata, nars, leases = NO_OTHER_MEMBERS },
    telemetry: { log, metrics },
  } = parts;
  const entries = metrics.series("evicted_entries_total", {});
  const bytes = metrics.series("evicted_bytes_total", {});
  const durations = metrics.histogram("eviction_duration_seconds", {});
  const observe = (
    { evictedEntries, freedBytes, durationMs }: RunFigures & { readonly durationMs: number },
  ) => {
    entries.add(evictedEntries);
    bytes.add(freedBytes);
    durations.observe(durationMs / 1_000);
  };
  const users = { reads, flushTouches: () => touches.flush() };
  const space = assembleSpace(parts.stores.space, users, {
    ...{ metadata, nars, leases, nowMs, log, observe },
  });
  const { budget } = space;
  metrics.gauge("cache_size_bytes", {}, () => budget.usedBytes);
  metrics.gauge("database_bytes", {}, () => budget.seen.database.bytes);
  metrics.gauge("cache_max_size_bytes", {}, () => {
    return budget.limitBytes === Infinity ? 0 : budget.limitBytes;
  });
  return space;
}

/** The DELETE handlers of narinfos and NARs; none unless the settings allow them. */
function buildRemover(parts: AppParts, { space, reads }: Stock) {
  if (!parts.writes.allowDelete) return { narinfos: {}, nars: {} };
  const remover = new Remover({
    metadata: parts.stores.metadata,
    sweeper: space.sweeper,
    reads,
    changed: () => void space.altered(),
  });
  return {
    narinfos: { remove: (storePathHash: StorePathHash) => remover.narinfo(storePathHash) },
    nars: { remove: (narName: NarName) => remover.nar(narName) },
  };
}

/** Wires the kept NAR files to the stores. */
function buildKeptNars(
  { stores: { metadata, nars }, telemetry: { log }, nowMs }: AppParts,
  { downloads, space }: { readonly downloads: Downloads; readonly space: Space },
): KeptNars {
  const { sweeper } = space;
  const changed = () => void space.altered();
  return new KeptNars({ metadata, nars, sweeper, downloads, changed, nowMs, log });
}

/** A space with a span for each wait. */
function tracedSpace(inner: Space, tracer: Tracer): Space {
  return traced(inner, tracer, {
    reserve: { name: "wait for space" },
    grow: { name: "wait for more space" },
  });
}

/** Wires the answers to NAR requests, of clients and of other members. */
function buildNars(
  parts: AppParts,
  stock: Stock,
  narinfos: NarinfoServer,
  prefetch: NarServerDeps["watchers"]["prefetch"],
) {
  const { metadata, leases } = parts.stores;
  const { metrics, tracer = NO_TRACER } = parts.telemetry;
  const { attempts, transfers, verifier, touches, reads, downloads, kept, forms, pool } = stock;
  const timeouts = narTimeouts(parts.upstream.settings);
  const { candidates } = attempts;
  const sources = memberSources(parts, stock);
  const isUpstream = (url: string) => sources.isUpstream(url);
  const sinks = (from: SinkFetcherDeps["narClients"]) => {
    const inner = new SinkFetcher({ narClients: from, ...timeouts });
    return observedFetcher(inner, { metrics, tracer, isUpstream });
  };
  const passThrough = {
    attempts: {
      ...attempts,
      candidates: { ...candidates, members: sources },
      // Each client takes the bytes at its own pace.
      logging: { ...attempts.logging, paces: undefined },
    },
    sinks: sinks(sources),
    ...{ transfers, verifier, tracer, isUpstream },
  };
  const { attempts: { candidates: withHolders } } = passThrough;
  const sizes = { candidates: withHolders, narClients: sources, ...timeouts };
  const here = new MemberNarServer({ metadata, kept, downloads, forms, reads });
  return {
    nars: new NarServer({
      ...{ kept, forms, downloads, passThrough, formerNames: metadata },
      watchers: { touches, reads, prefetch },
      memberDownloads: leases && new MemberDownloads({
        ...{ members: sources, downloads, here, passThrough },
        sinks: (own) => sinks(sources.with(own)),
      }),
      async narinfoOf(storePathHash, requestId) {
        const { text } = await narinfos.serve(storePathHash, { requestId, isHead: true });
        return text === undefined ? undefined : await metadata.findNarinfo(storePathHash);
      },
      isUpstream: (url) => pool.order("nar").includes(url),
      unnamedNars: new UnnamedNarServer({
        ...{ documents: metadata, pool, absent: stock.absentNars, loops: stock.loops },
        // A member's file may be another one than the document's.
        sizes: { ...sizes, candidates },
        passThrough,
      }),
      sizes,
    }),
    members: leases ? here : undefined,
  };
}

/** Other members have the tokens of this one. */
function memberSources(
  { stores, upstream, identity }: AppParts,
  { narClients, client }: Stock,
): MemberSources {
  const { leases = NO_OTHER_MEMBERS, space: { owner: member } } = stores;
  const token = identity.tokens.find(({ role }) => role === "read");
  const [first] = upstream.settings;
  return new MemberSources({
    leases,
    upstreams: narClients,
    client,
    member,
    settings: {
      ...MEMBER_TIMEOUTS,
      idleTimeoutMs: Math.min(MEMBER_IDLE_MAX_MS, narTimeouts(upstream.settings).idleTimeoutMs / 2),
      userAgent: first?.userAgent ?? "larder",
      ...(token === undefined ? {} : { authorization: `Bearer ${token.secret}` }),
    },
    trace: upstream.trace,
  });
}

/**
 * A member is near. One that waits for its own upstream is silent, too: leaving it costs a request
 * to an upstream. Staying with one that hangs would stop the client.
 */
const MEMBER_IDLE_MAX_MS = 5_000;

/** A member answers at once, before its own upstream does. */
const MEMBER_TIMEOUTS = { dialTimeoutMs: 1_000, headerTimeoutMs: 3_000 };

interface BuiltUploads {
  /** The NARs that clients upload now. */
  readonly inFlight: InFlight;
  readonly routes: readonly Route[];
  /** Removes the NARs whose narinfo has not come in time. */
  expire(): Promise<void>;
}

/** Wires the routes below `/upload`. */
function buildUploads(parts: AppParts, cache: Cache): BuiltUploads {
  const { stores, identity, telemetry: { metrics, log, tracer = NO_TRACER }, nowMs } = parts;
  const { metadata, nars, spool, space: { owner } } = stores;
  const { kept, downloads, forms, space, reads, touches, negative, absentDocuments } = cache;
  const { verifier } = cache;
  const signer = createSigner(identity.secretKey);
  const changed = () => void space.altered();
  const entries = { kept: openForPush(kept), reads, touches };
  const stored = new StoredView({ metadata, entries, forms, signer });
  const allowance = new MemoryAllowance(MEMORY_BYTES_MAX);
  const received = metrics.series("upload_bytes_total", {});
  const narUploads = new NarUploads({
    publishing: { metadata, nars, nowMs, owner },
    ...{ entries, space, verifier, folder: spool.path, outages: downloads.outages },
    telemetry: { received, tracer, log },
  });
  metrics.gauge("in_flight_uploads", {}, () => narUploads.running.count);
  const trust = uploadTrust(parts);
  const rows = { metadata, signer };
  const signedPaths = new SignedPaths({
    metadata,
    upstreams: comparedUpstreams(cache),
    countMax: () => signedPathsMax(parts.stores.space.limit.bytes),
  });
  const settings = { negative, trust, signedPaths, changed, nowMs, log };
  const narinfoUploads = new NarinfoUploads({ rows, entries, ...settings });
  const totalBytesMax = () => documentBytesMax(parts.stores.space.limit.bytes);
  const documentUploads = new DocumentUploads({
    ...{ metadata, allowance, decoder: verifier, totalBytesMax, nowMs },
    negative: absentDocuments,
  });
  const ifAllowed = <Uploads>(uploads: Uploads) =>
    parts.writes.uploads.allowed ? uploads : undefined;
  const deps = { stored, handling: { metrics, log, closed: trust.closed } };
  return {
    inFlight: narUploads.running,
    routes: [
      nixCacheInfoRoute(identity.priority, "/upload"),
      uploadNarinfoRoute({
        ...{ ...deps, uploads: ifAllowed(narinfoUploads) },
        decoding: { allowance, decoder: verifier },
      }),
      uploadNarRoute({ ...deps, uploads: ifAllowed(narUploads) }),
      ...uploadDocumentRoutes({ ...deps, uploads: ifAllowed(documentUploads) }),
    ],
    expire: () => {
      const { sweeper } = space;
      return expireStagedNars({ metadata, sweeper, reads, owner, changed, nowMs, log });
    },
  };
}

function comparedUpstreams({ narinfoFetches: narinfos, negative, pool }: Cache) {
  if (pool.isEmpty) return undefined;
  return { narinfos, negative, isAnyUp: () => pool.statuses().some(({ isUp }) => isUp) };
}

function uploadTrust({ writes: { uploads }, identity, upstream }: AppParts): UploadTrust {
  return new UploadTrust({
    uploadKeys: uploads.keys,
    upstreamKeys: upstream.trustedKeys,
    requireSignature: uploads.requireSignature,
    hasWriteToken: identity.tokens.some(({ role }) => role !== "read"),
  });
}

/** How long the figures wait for names. A database that hangs takes longer. */
const NAME_WITHIN_MS = 1_000;

/** Sources of the page, beside the parts of the app. */
interface PageSubjects {
  readonly cache: Cache;
  readonly uploads: InFlight;
  readonly waits: AskedUpstreams;
  readonly names: StorePathNames;
  /** The answers of upstreams about each path. */
  readonly record: PathRecord;
  readonly pins: PinReads;
  /** The free bytes of the storage's disk, pinned bytes, and those in zstd. */
  readonly figures: {
    readonly disk: { readonly freeBytes: number | undefined };
    readonly pinnedBytes: () => number;
    readonly recompressedBytes: () => number;
  };
  readonly planner: Planner;
  readonly plans: ReadTurns;
  readonly history: HistoryReader;
  readonly pulls: Pulls;
  readonly isDraining: () => boolean;
}

interface PageParts extends AsyncDisposable {
  readonly routes: readonly Route[];
  /** Call this after each pin and unpin. */
  pinsChanged(): void;
  /** Ends the searches that run, and refuses all others. */
  stopping(): void;
  /** Exchanges reports with the other members. Never rejects. */
  reportToMembers(): Promise<void>;
}

/** Wires `/` and `/stats` to their sources. */
function buildPage(parts: AppParts, subjects: PageSubjects): PageParts {
  const { nowMs, stores: { metadata }, telemetry: { log, metrics, problems } } = parts;
  const { identity: { secretKey, usesTls }, upstream: { trustedKeys } } = parts;
  const { reachableUrl = (url: string) => Promise.resolve(url) } = parts.identity;
  const { cache, uploads, waits, names: known, record, pins: pinReads, figures } = subjects;
  const { planner, plans, history, pulls, isDraining } = subjects;
  const { inFlight, downloads, reads, kept, negative, space: { budget } } = cache;
  const pins = new PinWatch({ metadata, nowMs, log, closures: pinReads });
  const publicKey = secretKey?.publicKey.text;
  const shared = {
    process: {
      version: denoJson.version,
      publicKey,
      isPrefetching: parts.fetching.prefetch !== undefined,
      startedAtMs: nowMs(),
      nowMs,
    },
    ...{ metrics, upstreams: cache },
    transfers: {
      ...{ downloads: inFlight, uploads, reads },
      backlog: () => downloads.backlog(),
      nameOf: async (narName: NarName) => {
        const name = known.of(narName);
        return typeof name === "string" ? name : await clock.within(name, NAME_WITHIN_MS);
      },
    },
  };
  const members = buildMembers(parts, { ...shared, problems }, isDraining);
  const reports = { problems, members: members ?? { list: () => [] } };
  const sources = {
    ...shared,
    history,
    storage: { ...figures, budget, pins },
    reports,
  };
  const stats = (query: StatsQuery) => gatherStats(sources, query);
  // Without a signature of ours, clients have to trust the keys of the upstreams.
  const publicKeys = publicKey === undefined ? trustedKeys.map(({ text }) => text) : [publicKey];
  const page = loadedPage();
  const explainer = new Explainer({
    metadata,
    kept,
    pins: pinReads,
    keys: [...trustedKeys, ...parts.writes.uploads.keys],
    negative,
    record,
    ...{ downloads, waits },
    log,
    hasLimit: () => budget.limitBytes < Infinity,
  });
  const names: NameFinder = {
    async findNamed(text, countMax, signal) {
      const stored = await metadata.findNamed(text, countMax, signal);
      return stored.length > 0 ? stored : record.findNamed(text, countMax);
    },
  };
  const searches = new Searches({ explainer, planner, plans, names });
  return {
    routes: [
      statsRoute(stats),
      clientConfigRoute({ publicKeys, usesTls, reachableUrl }),
      explainRoute({ searches }),
      pageRoute({
        ...{ page, stats, searches, pulls, publicKeys, usesTls, reachableUrl },
        hasMetrics: parts.telemetry.hasMetricsRoute,
      }),
      ...pullRoutes({ pulls, page, nowMs }),
      SIGN_IN_ROUTE,
    ],
    pinsChanged: () => pins.changed(),
    stopping: () => searches[Symbol.dispose](),
    reportToMembers: async () => await members?.exchange(),
    async [Symbol.asyncDispose]() {
      searches[Symbol.dispose]();
      await members?.[Symbol.asyncDispose]();
      await pins[Symbol.asyncDispose]();
    },
  };
}

/** The page. Its modules load for its first visitor: most larders have none. */
function loadedPage(): () => Promise<Page> {
  const source = readPageSource();
  let page: Promise<Page> | undefined;
  const load = async () => new (await import("../http/page/page.ts")).Page(source);
  return () => page ??= load();
}

function buildMembers(
  { stores, nowMs, telemetry: { members, metrics, log } }: AppParts,
  sources: Omit<MemberFigureSources, "own">,
  isDraining: () => boolean,
): MemberReports | undefined {
  if (members === undefined) return undefined;
  const { board, isShared, ...own } = members;
  const gatherer = new MemberGatherer({ ...sources, own: { ...own, isDraining } });
  const status = () => gatherer.status();
  const self = stores.space.owner;
  const reports = new MemberReports({ board, self, isShared, status, nowMs, log });
  for (const state of MEMBER_STATES) {
    metrics.gauge("members", { state }, () => reports.count(state));
  }
  return reports;
}

/** Reads the files of the page; the executable embeds them. */
function readPageSource(): PageSource {
  return {
    template: read("page.html"),
    style: read("page.css"),
    script: read("page.js"),
  };
}

function read(name: string): string {
  return Deno.readTextFileSync(new URL(`../http/page/${name}`, import.meta.url));
}
