import { MemoryAllowance } from "../base/memory_allowance.ts";
import { documentBytesMax } from "../cache/documents/document_bytes.ts";
import { DocumentServer, type DocumentServerDeps } from "../cache/documents/serve_document.ts";
import { Downloads } from "../cache/download/downloads.ts";
import { observedFetcher } from "../cache/fetch/observed_fetcher.ts";
import { allInFlight, type InFlight } from "../cache/fetch/transfer_progress.ts";
import { NarForms } from "../cache/forms/nar_forms.ts";
import { formerNames } from "../cache/forms/recompressed.ts";
import type { KeptNars } from "../cache/kept/kept_nars.ts";
import { PathRecord } from "../cache/nar/path_record.ts";
import { tryStoring } from "../cache/nar/try_storing.ts";
import { NarinfoFetches } from "../cache/narinfo/narinfo_fetches.ts";
import { NarinfoRefresh } from "../cache/narinfo/narinfo_refresh.ts";
import { NegativeCache } from "../cache/narinfo/negative_cache.ts";
import { createSigner } from "../cache/narinfo/own_signature.ts";
import { NarinfoServer } from "../cache/narinfo/serve_narinfo.ts";
import { PassThroughTransfers } from "../cache/pass_through/pass_through_transfers.ts";
import { PinLooks } from "../cache/pinned/pin_looks.ts";
import { Planner } from "../cache/plan/planner.ts";
import { Prefetch } from "../cache/prefetch/prefetch.ts";
import { NO_PREFETCH } from "../cache/prefetch/prefetch_ports.ts";
import { Recompression } from "../cache/recompress/recompression.ts";
import { Demotions } from "../cache/sources/demotions.ts";
import { narTimeouts } from "../cache/sources/nar_attempts.ts";
import { NarPaces } from "../cache/sources/nar_paces.ts";
import { namedLog, StorePathNames } from "../cache/store_path_names.ts";
import { Touches } from "../cache/touches.ts";
import { decodingWith } from "../cache/verify/decode_encoded.ts";
import { DecodedNars } from "../cache/verify/decoded_nars.ts";
import { type Counters, History } from "../history/history.ts";
import { Pulls } from "../history/pulls.ts";
import { AccessRules } from "../http/access/access_rules.ts";
import { HttpMetrics, RequestObserver } from "../http/pipeline/request_observer.ts";
import { createRequestPipeline, type RequestPipeline } from "../http/pipeline/request_pipeline.ts";
import { documentRoutes } from "../http/routes/documents.ts";
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
import { pageActionRoutes } from "../http/routes/page_actions.ts";
import { pinNamesRoute } from "../http/routes/pin_names.ts";
import { pinnedClosuresRoute, pinRoute, pinsRoute, verifyPinsRoute } from "../http/routes/pins.ts";
import { planRoute, planTurns } from "../http/routes/plan.ts";
import { type Route, Router } from "../http/routes/router.ts";
import { requestStats, trafficStats } from "../http/stats/gather_stats.ts";
import { NO_OTHER_MEMBERS } from "../locks/work_leases.ts";
import { signedPathsMax } from "../metadata/metadata_store.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import { type NarName, parseNarName } from "../nix/nar_name.ts";
import { isStorePathHash, type StorePathHash } from "../nix/store_path.ts";
import { PinReads } from "../pins/pin_reads.ts";
import { type ClosureLister, PinnedClosures } from "../pins/pinned_closures.ts";
import { Pins } from "../pins/pins.ts";
import { clock } from "../runtime/current.ts";
import { ActiveReads } from "../space/active_reads.ts";
import { gcEvents, type GcOrder } from "../space/gc_event.ts";
import type { Space } from "../space/space.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { NO_TRACER } from "../telemetry/tracer.ts";
import { AskedUpstreams } from "../upstream/asked_upstreams.ts";
import { DocumentPool } from "../upstream/document_pool.ts";
import { answerTimeoutOf, traceWith } from "../upstream/http/upstream_fetch.ts";
import { HttpDocumentSource } from "../upstream/http/http_document_source.ts";
import { Loops } from "../upstream/loops.ts";
import { queuedDocumentSource } from "../upstream/upstream_queue.ts";
import type { StartProbe, UpstreamPool } from "../upstream/upstream_pool.ts";
import { tracedDocumentSource } from "../upstream/watched_sources.ts";
import type { AppParts, StoreParts } from "./app_parts.ts";
import { buildNars } from "./build_nars.ts";
import { buildPage } from "./build_page.ts";
import { buildKeptNars, buildRemover, buildSpace, tracedSpace } from "./build_space.ts";
import { buildUploads } from "./build_uploads.ts";
import { buildUpstreams } from "./build_upstreams.ts";
import { WorkerEncoder } from "./workers/worker_encoder.ts";
import { WorkerFetcher } from "./workers/worker_fetcher.ts";
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

/** Memory of all documents in flight. */
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
  const { narinfos, nars, members, downloads, space, reads, remover, prefetch } = cache;
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
  const { inFlight } = cache;
  const transfers = { inFlight, downloads, waits, reads, uploads: uploads.inFlight };
  const shown = {
    upstreams: cache,
    transfers,
    storage: {
      ...{ space, disk, pins: pinReads, pinnedBytes },
      recompressedBytes: () => recompression?.counts.zstdBytes ?? 0,
    },
    history,
    pulls,
  };
  const known = { names, kept: cache.kept, negative: cache.negative, record: paths };
  const planner = new Planner({ ...cache, metadata: stores.metadata, nowMs: parts.nowMs });
  const plans = resources.use(planTurns());
  const page = buildPage(parts, {
    ...shown,
    paths: known,
    planner,
    plans,
    isDraining: () => !ready,
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
    ...{ space, history, disk, reads, touches: cache.touches, kept: cache.kept },
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

interface PipelineSubjects {
  readonly routes: readonly Route[];
  readonly loops: Loops;
  readonly pulls: Pulls;
}

function pipelineOf(
  { identity, telemetry, writes }: AppParts,
  { routes, loops, pulls }: PipelineSubjects,
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
export type Cache = ReturnType<typeof buildCache>;

function buildCache(
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
  const { pool, lastAnswers, rates } = upstreams;
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
  const shared = { pool, negative, demotions, touches, downloads, kept, space, names, loops };
  const { narinfos, narinfoFetches, prefetch } = buildNarinfos(parts, shared);
  return {
    ...{ pool, lastAnswers, rates, downloads, inFlight, space },
    ...{ kept, forms, negative, absentDocuments, verifier, decoded },
    prepareWorkers() {
      // Without upstreams the Workers would waste 30 MB. The first upload starts its own.
      if (pool.isEmpty) return;
      fetcher.prepare();
      // Starting a Worker stops this thread for some 25 ms. Requests have their turn in between.
      clock.after(0, () => verifier.prepare());
    },
    reads,
    touches,
    remover: buildRemover(parts, space, reads),
    ...{ narinfos, narinfoFetches, prefetch },
    ...buildNars(parts, {
      ...{ upstreams, attempts, transfers, verifier, downloads, kept, forms, narinfos },
      ...{ absent: absentNars, loops },
      watchers: { touches, reads, prefetch: prefetch ?? NO_PREFETCH },
    }),
    documents: buildDocuments(parts, upstreams, {
      ...{ loops, touches },
      ...{ decoder: verifier, negative: absentDocuments },
    }),
  };
}

/** Wires the cache of listings, logs, realisations and debuginfo. */
function buildDocuments(
  parts: AppParts,
  { client, pool, observe, waited }: ReturnType<typeof buildUpstreams>,
  shared: Pick<DocumentServerDeps, "decoder" | "negative" | "touches" | "loops">,
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
    ...{ ...shared, metadata, nowMs: parts.nowMs, log },
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

/** Objects that narinfos share with the rest of the cache. */
interface NarinfoNeighbours {
  readonly pool: UpstreamPool;
  readonly negative: NegativeCache;
  readonly demotions: Demotions;
  readonly touches: Touches;
  readonly downloads: Downloads;
  readonly kept: KeptNars;
  readonly space: Space;
  readonly names: Pick<StorePathNames, "note">;
  readonly loops: Pick<Loops, "isPassedOn">;
}

/** Wires narinfos, and the prefetch for the clients that request them. */
function buildNarinfos(parts: AppParts, neighbours: NarinfoNeighbours) {
  const { nowMs, fetching, stores: { metadata, leases, storedPaths: stored } } = parts;
  const { log, metrics } = parts.telemetry;
  const { pool, negative, demotions, touches, downloads, kept, space, names, loops } = neighbours;
  const signer = createSigner(parts.identity.secretKey);
  const narinfoFetches = new NarinfoFetches({
    ...{
      metadata,
      names,
      pool,
      signer,
      nowMs,
      memory: { negative, demotions },
      leases,
      loops,
      log,
    },
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
