import type { DownloadProgress, InFlight } from "../../cache/download/download_progress.ts";
import type { SpaceBudget } from "../../space/space_budget.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { PinWatch } from "../../pins/pin_watch.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Problem, RecentProblems } from "../../telemetry/recent_problems.ts";
import type { LastAnswers } from "../../upstream/last_answers.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type {
  PinStats,
  PrefetchStats,
  ProblemStats,
  RequestStats,
  SizeStats,
  Stats,
  TrafficStats,
  TransferStats,
  UpstreamStats,
} from "./stats.ts";

/** Further downloads and uploads are counted, but not listed. */
const TRANSFERS_MAX = 50;

/** The sources of the figures. None scans a table. */
export interface StatsSources {
  readonly version: string;
  readonly publicKey: string | undefined;
  readonly startedAtMs: number;
  readonly nowMs: () => number;
  readonly metrics: Pick<Metrics, "value">;
  readonly budget: SpaceBudget;
  readonly pool: Pick<UpstreamPool, "statuses">;
  readonly lastAnswers: Pick<LastAnswers, "of">;
  readonly downloads: InFlight;
  readonly uploads: InFlight;
  /** Name of a store path with this NAR. Never rejects. */
  readonly nameOf: (narName: NarName) => Promise<string | undefined>;
  readonly pins: Pick<PinWatch, "look">;
  readonly problems: Pick<RecentProblems, "list">;
}

/** The present figures, for this client. Never rejects: an unreadable one is `null`. */
export async function gatherStats(sources: StatsSources, client?: string): Promise<Stats> {
  const { version, publicKey, startedAtMs, nowMs, metrics } = sources;
  const atMs = nowMs();
  const [downloads, uploads, pins] = await Promise.all([
    transferStats(sources, sources.downloads),
    transferStats(sources, sources.uploads),
    pinStats(sources),
  ]);
  return {
    version,
    at: iso(atMs),
    startedAt: iso(startedAtMs),
    uptimeSeconds: Math.max(0, Math.round((atMs - startedAtMs) / 1_000)),
    publicKey: publicKey ?? null,
    client: client ?? null,
    requests: { narinfo: requestStats(metrics, "narinfo"), nar: requestStats(metrics, "nar") },
    traffic: trafficStats(metrics),
    prefetch: { narinfo: prefetchStats(metrics, "narinfo"), nar: prefetchStats(metrics, "nar") },
    size: sizeStats(sources),
    upstreams: upstreamStats(sources),
    downloads,
    uploads,
    pins,
    problems: sources.problems.list().map(problemStats),
  };
}

function requestStats(metrics: StatsSources["metrics"], kind: "narinfo" | "nar"): RequestStats {
  const of = (result: "hit" | "miss" | "joined" | "negative" | "prefetched") =>
    metrics.value("cache_requests_total", { kind, result });
  const [hits, misses, joined] = [of("hit"), of("miss"), of("joined")];
  const prefetched = of("prefetched");
  // An upstream had a request for prefetched ones, too.
  const all = hits + misses + joined + prefetched;
  const hitRatio = all === 0 ? null : (hits + joined) / all;
  return { hits, misses, joined, prefetched, absent: of("negative"), hitRatio };
}

function prefetchStats(metrics: StatsSources["metrics"], kind: "narinfo" | "nar"): PrefetchStats {
  const of = (result: "used" | "wasted" | "failed" | "skipped") =>
    metrics.value("prefetch_total", { kind, result });
  return { used: of("used"), wasted: of("wasted"), failed: of("failed"), skipped: of("skipped") };
}

function trafficStats(metrics: StatsSources["metrics"]): TrafficStats {
  const of = (source: "hit" | "miss" | "joined" | "prefetched") =>
    metrics.value("served_bytes_total", { kind: "narinfo", source }) +
    metrics.value("served_bytes_total", { kind: "nar", source });
  const savedBytes = of("hit") + of("joined");
  const upstreamBytes = metrics.value("upstream_bytes_total", {});
  const servedBytes = savedBytes + of("miss") + of("prefetched");
  return { servedBytes, upstreamBytes, savedBytes };
}

function sizeStats({ metrics, budget }: StatsSources): SizeStats {
  const { usedBytes, reservedBytes, pinnedBytes, limitBytes } = budget;
  return {
    usedBytes,
    reservedBytes,
    pinnedBytes,
    limitBytes: limitBytes === Infinity ? null : limitBytes,
    evictedBytes: metrics.value("evicted_bytes_total", {}),
    evictedEntries: metrics.value("evicted_entries_total", {}),
  };
}

function upstreamStats({ pool, lastAnswers }: StatsSources): readonly UpstreamStats[] {
  return pool.statuses().map(({ url, isUp, priority }) => {
    const last = lastAnswers.of(url);
    const lastAnswer = last === undefined ? null : { result: last.result, at: iso(last.atMs) };
    return { url, isUp, priority: priority ?? null, lastAnswer };
  });
}

async function transferStats(
  { nameOf }: StatsSources,
  inFlight: InFlight,
): Promise<{ readonly count: number; readonly underWay: readonly TransferStats[] }> {
  const { count } = inFlight;
  const show = async (one: DownloadProgress): Promise<TransferStats> => ({
    nar: one.narName,
    name: await nameOf(one.narName) ?? null,
    state: one.state,
    receivedBytes: one.receivedBytes,
    fileBytes: one.fileSize ?? null,
    startedAt: iso(one.startedAtMs),
    clientCount: one.clients.count,
    clients: one.clients.addresses,
  });
  return { count, underWay: await Promise.all(inFlight.progress(TRANSFERS_MAX).map(show)) };
}

async function pinStats({ pins }: StatsSources): Promise<PinStats | null> {
  const watched = await pins.look();
  if (watched === undefined) return null;
  const { count, countedAtMs } = watched;
  const roots = watched.roots.map(({ root, name, pinnedAtMs, size }) => ({
    root,
    name: name ?? null,
    pinnedAt: iso(pinnedAtMs),
    stored: size?.stored ?? null,
    missing: size?.missing ?? null,
    bytes: size?.bytes ?? null,
  }));
  return { count, countedAt: countedAtMs === undefined ? null : iso(countedAtMs), roots };
}

function problemStats({ firstAtMs, lastAtMs, ...problem }: Problem): ProblemStats {
  return { ...problem, firstAt: iso(firstAtMs), lastAt: iso(lastAtMs) };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
