import denoJson from "../../deno.json" with { type: "json" };
import { messageOf } from "../base/failure.ts";
import { withoutUrlSecrets } from "../base/url_secrets.ts";
import { hasZstdEncoder } from "../cache/recompress/encode_nar.ts";
import { ConfigError } from "../config/config_error.ts";
import type { Settings } from "../config/options.ts";
import { givenHostname, type ResolvedSettings } from "../config/settings.ts";
import { TrustedProxies } from "../http/proxy/trusted_proxies.ts";
import { accelRedirect, type HandOver, storeRedirect } from "../http/routes/nar.ts";
import type { PinFinder } from "../metadata/metadata_store.ts";
import { clock } from "../runtime/current.ts";
import { SYSTEM_RUNTIME } from "../runtime/runtime.ts";
import type { SpaceParts } from "../space/assemble_space.ts";
import type { LocalSpool } from "../storage/local/local_spool.ts";
import { narPathOf } from "../storage/local/local_nar_store.ts";
import { LineQueue } from "../telemetry/line_queue.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { announce, type Start } from "./announce.ts";
import type {
  FetchingParts,
  IdentityParts,
  MemberParts,
  StoreParts,
  UpstreamParts,
  WriteParts,
} from "./app_parts.ts";
import type { StorePlaces } from "./back_ends/back_ends.ts";
import { type App, buildApp } from "./build_app.ts";
import { type ChoresDeps, startChores } from "./chores.ts";
import { type Folders, prepareFolders, storePlaces } from "./folders.ts";
import { drain, stopSignal } from "./lifecycle.ts";
import { listen, type ListenParts } from "./listen.ts";
import { logFormat } from "./log_format.ts";
import { openLeases } from "./open_leases.ts";
import { openSigningKey, planSigningKey } from "./own_key.ts";
import { ownNamesOf } from "./own_names.ts";
import { reachableUrls } from "./reachable_url.ts";
import { startReconciliation } from "./reconciliation.ts";
import { serviceManager } from "./service_manager.ts";
import { sizeLimitOf } from "./size_limit_of.ts";
import { backEndGauges, certificateGauge, startTelemetry } from "./start_telemetry.ts";
import { openStores, type Stores } from "./stores.ts";
import { tokensOf } from "./tokens.ts";
import { caCertificates, upstreamSettings } from "./upstream_settings.ts";
import { reportUsage } from "./usage_report.ts";
import { WorkerClosures } from "./workers/worker_closures.ts";
import { WorkerComparer } from "./workers/worker_comparer.ts";

/** Time limit for the last log lines: a stalled reader must not keep the process. */
const LOG_FLUSH_MAX_MS = 1_000;

/**
 * Runs the server until a stop signal; resolves to the exit status. Throws a Failure if it cannot
 * start. Upstreams that are down are no reason.
 */
export async function serve(resolved: ResolvedSettings): Promise<number> {
  const { settings } = resolved;
  const hostname = givenHostname(resolved);
  const fetching = fetchingParts(settings);
  const queue = new LineQueue(Deno.stdout, await logFormat(settings));
  const upstreams = await upstreamSettings(settings, `larder/${denoJson.version}`);
  const telemetry = await startTelemetry({ settings, upstreams, queue });
  const { log, problems, metrics, tracer, upstreamTrace } = telemetry;
  using _unexpected = logUnexpected(log);
  const stopped = stopSignal();
  const folders = prepareFolders(settings);
  const keyPlan = await planSigningKey(settings, folders);
  const upstream = await upstreamParts(settings, upstreams, upstreamTrace);
  const places = storePlaces(settings);
  {
    await using stores = await openStores(places, folders, log, { tracer, metrics });
    problems.takeClock(stores.nowMs);
    const hasRedis = settings["cache.redis-addrs"].length > 0;
    backEndGauges({ metrics, problems, nars: places.nars, hasRedis });
    const secretKey = keyPlan && await openSigningKey(keyPlan, stores.keys, log);
    const { spool, member, metadata, nars, storedPaths } = stores;
    await using leases = await openLeases(settings, { ...stores, metrics, tracer, log });
    await using app = buildApp({
      stores: {
        ...{ metadata, nars, storedPaths },
        ...closuresIn(places, metadata),
        generation: () => metadata.generation,
        whenArrived: (on) => metadata.whenArrived(on),
        ...{ spool, leases },
        handOver: handOverOf(settings, stores),
        space: { ...spaceParts(settings, folders, stores), url: () => leases?.ownUrl() },
      },
      upstream,
      identity: await identityParts(settings, { secretKey, hostname }),
      telemetry: {
        ...{ log, problems, metrics, tracer, members: memberParts(settings, stores) },
        hasMetricsRoute: settings["prometheus.enabled"],
        countsRequests: settings["prometheus.enabled"] || tracer !== undefined,
      },
      fetching,
      writes: writeParts(settings),
      nowMs: stores.nowMs,
      runtime: SYSTEM_RUNTIME,
    });
    await begin(app, spool);
    const { pipeline } = app;
    // A health check is an answer, too: the first NAR of a client that has its narinfos already finds
    // the Workers ready.
    pipeline.onFirstAnswer(() => app.prepareWorkers());
    const parts = {
      ...listenSettings(settings, metrics),
      server: { ...pipeline, log, nowMs: () => clock.wallMs(), proxies: proxiesOf(settings) },
    };
    await using listener = await listen(parts);
    leases?.listening(listener.url);
    // The others find the address in this member's row.
    if (leases !== undefined) await app.space.beat();
    using service = serviceManager({ variable, folder: folders.storage, log });
    service.ready(`serving on ${listener.url}`);
    announce({
      ...{ settings, hostname, log, secretKey, output: queue, probes: app.probeUpstreams() },
      place: { url: listener.url, storage: folders.storage },
      limit: app.space.budget.limit,
    });
    await using _chores = startChores({
      stores,
      app,
      ...choreTimes(settings),
      ...{ storage: folders.storage, metrics, log },
    });
    await using _reconciliation = await startReconciliation({
      ...{ stores, app, leases, log },
      beside: new WorkerComparer(places),
      owner: member,
    });
    using _usage = reportUsage(settings, log);
    log.info("server shutdown", {
      signal: await stopped,
      hint: "requests and downloads end first, within 20 s; a second signal ends all at once",
    });
    await drain({ app, listener, service, log, delayMs: settings["server.drain-delay"] });
  }
  await telemetry.stop();
  await clock.within(queue.flushed(), LOG_FLUSH_MAX_MS);
  return 0;
}

/** Opens the parts that the first request needs. */
async function begin(app: App, spool: Pick<LocalSpool, "takeReceived">): Promise<void> {
  await app.space.open();
  await app.history.start();
  await app.receive(spool.takeReceived());
}

const variable = (name: string) => Deno.env.get(name) || undefined;

function spaceParts(
  settings: Settings,
  folders: Folders,
  { member: owner, graceMs }: Stores,
): SpaceParts {
  return { limit: sizeLimitOf(settings, folders), owner, graceMs };
}

function memberParts(settings: Settings, { board }: Stores): MemberParts {
  return {
    ...{ board, host: Deno.hostname(), url: settings["cache.advertise-url"] },
    isShared: settings["cache.database-url"].kind === "postgres",
  };
}

function handOverOf(settings: Settings, { locator }: Stores): HandOver | undefined {
  if (locator !== undefined) {
    return settings["cache.storage-s3-redirect"] ? storeRedirect(locator) : undefined;
  }
  const location = settings["server.accel-redirect"];
  if (location === undefined) return undefined;
  return accelRedirect((at) => location + narPathOf(at));
}

function proxiesOf(settings: Settings): TrustedProxies | undefined {
  const ranges = settings["server.trusted-proxies"];
  return ranges.length === 0 ? undefined : new TrustedProxies(ranges);
}

async function upstreamParts(
  settings: Settings,
  upstreams: UpstreamParts["settings"],
  trace: UpstreamParts["trace"],
): Promise<UpstreamParts> {
  return {
    settings: upstreams,
    caCertificates: await caCertificates(settings),
    trustedKeys: settings["cache.upstream-public-key"],
    requireSignature: settings["cache.require-upstream-signature"],
    trace,
  };
}

async function identityParts(
  settings: Settings,
  { secretKey, hostname }: Pick<Start, "secretKey" | "hostname">,
): Promise<IdentityParts> {
  return {
    secretKey,
    priority: settings["cache.priority"],
    ownNames: await ownNamesOf(settings),
    usesTls: settings["server.tls-cert"] !== undefined,
    ...reachesOthers(settings["server.addr"]) ? { reachableUrl: reachableUrls({ hostname }) } : {},
    tokens: tokensOf(settings),
  };
}

/** False for a listener that has an address of its own: what the browser calls it stands. */
function reachesOthers(address: Settings["server.addr"]): boolean {
  return address.kind === "tcp" &&
    [undefined, "::", "0.0.0.0"].includes(address.hostname);
}

function writeParts(settings: Settings): WriteParts {
  return {
    allowDelete: settings["cache.allow-delete-verb"],
    uploads: {
      allowed: settings["cache.allow-put-verb"],
      keys: settings["cache.trusted-upload-key"],
      requireSignature: settings["cache.require-trusted-signature"],
    },
  };
}

function fetchingParts(settings: Settings): FetchingParts {
  const narBytesMax = settings["cache.prefetch-nar-max-size"];
  return {
    negativeTtlMs: settings["cache.negative-ttl"],
    narinfoRefreshMs: settings["cache.narinfo-refresh"],
    verifyThreads: settings["cache.verify-threads"],
    prefetch: settings["cache.prefetch"] ? { narBytesMax } : undefined,
    recompress: recompressParts(settings),
  };
}

/** Throws a ConfigError where the runtime cannot do what the settings demand. */
export function recompressParts(
  settings: Pick<Settings, "cache.recompress" | "cache.recompress-level">,
  cores = navigator.hardwareConcurrency,
): FetchingParts["recompress"] {
  const wanted = settings["cache.recompress"];
  const parts = { level: settings["cache.recompress-level"] };
  if (wanted === "off") return undefined;
  if (hasZstdEncoder()) {
    const isWorthIt = wanted === "on" || cores > 1;
    return isWorthIt ? parts : undefined;
  }
  if (wanted === "auto") return undefined;
  throw new ConfigError([
    `--cache-recompress=on: expected a Deno that writes zstd, from 2.7.0 on; this one is ${Deno.version.deno}`,
  ]);
}

function listenSettings(
  settings: Settings,
  metrics: Pick<Metrics, "gauge">,
): Omit<ListenParts, "server"> {
  const ranges = settings["server.trusted-proxies"];
  const place = {
    proxyRanges: settings["server.proxy-protocol"] ? ranges : undefined,
    address: settings["server.addr"],
    socket: { mode: settings["server.socket-mode"], group: settings["server.socket-group"] },
    perAddressMax: settings["server.connections-per-address"],
  };
  const certPath = settings["server.tls-cert"];
  const keyPath = settings["server.tls-key"];
  // A rule of the settings requires both or none.
  if (certPath === undefined || keyPath === undefined) return place;
  return { ...place, tls: { certPath, keyPath, certificateUsed: certificateGauge(metrics) } };
}

/** Counter of pinned closures. SQLite needs a thread for it; PostgreSQL works elsewhere anyway. */
function closuresIn({ database }: StorePlaces, metadata: PinFinder): Pick<StoreParts, "closures"> {
  if (database.kind !== "sqlite") return {};
  return { closures: new WorkerClosures({ metadata, databasePath: database.path }) };
}

function choreTimes(settings: Settings): Pick<ChoresDeps, "schedule" | "retentionMs"> {
  const retentionMs = settings["cache.metadata-retention"];
  const schedule = settings["cache.lru-schedule"];
  if (schedule === undefined) return { schedule, retentionMs };
  return { schedule: { schedule, timezone: settings["cache.lru-schedule-timezone"] }, retentionMs };
}

/**
 * Logs uncaught errors and goes on, until disposed of. A bug in one request must not end the builds
 * of all others.
 */
export function logUnexpected(log: Logger): Disposable {
  const rejected = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    report(event.reason);
  };
  const thrown = (event: ErrorEvent) => {
    event.preventDefault();
    report(event.error);
  };
  const report = (error: unknown) => {
    const stack = withoutUrlSecrets(error instanceof Error ? error.stack ?? "" : "");
    log.event("unexpected-failure", { error: messageOf(error), stack });
  };
  globalThis.addEventListener("unhandledrejection", rejected);
  globalThis.addEventListener("error", thrown);
  return {
    [Symbol.dispose]() {
      globalThis.removeEventListener("unhandledrejection", rejected);
      globalThis.removeEventListener("error", thrown);
    },
  };
}
