import type { VerificationBacklog } from "../../cache/download/downloads.ts";
import type { InFlight, TransferProgress } from "../../cache/fetch/nar_fetcher.ts";
import type { HistoryReader } from "../../history/history.ts";
import { type Figure, FIGURES, TIERS } from "../../metadata/history_keeper.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { PinWatch } from "../../pins/pin_watch.ts";
import { countsWithLook, type PinNotes, shownNotes } from "../../pins/pinned_closures.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import type { SpaceBudget } from "../../space/size_limit.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Problem, RecentProblems } from "../../telemetry/recent_problems.ts";
import type { LastAnswer, LastAnswers, LastError } from "../../upstream/last_answers.ts";
import type { NarRates } from "../../upstream/pooled_upstream.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { MemberReports } from "./member_reports.ts";
import { judgedProblems } from "./shown_state.ts";
import {
  type BacklogStats,
  type HistorySlotStats,
  type HistoryStats,
  type LifetimeRequestStats,
  type LifetimeStats,
  type PinStats,
  type PrefetchStats,
  type ProblemStats,
  type RequestStats,
  type SendsStats,
  type SizeStats,
  type Stats,
  STATS_VERSION,
  type TrafficStats,
  type TransfersStats,
  type TransferStats,
  type UpstreamStats,
} from "./stats.ts";
import { verdictOf } from "./verdict.ts";

/** larder counts further downloads, uploads and sends, and does not list them. */
const TRANSFERS_MAX = 50;

/** The running larder. */
export interface ProcessFacts {
  readonly version: string;
  readonly publicKey: string | undefined;
  /** False if this larder prefetches nothing. */
  readonly isPrefetching: boolean;
  readonly startedAtMs: number;
  readonly nowMs: () => number;
}

/** The sources of the figures. None scans a table. */
export interface StatsSources {
  readonly process: ProcessFacts;
  readonly metrics: Pick<Metrics, "value">;
  readonly history: HistoryReader;
  readonly storage: {
    readonly budget: SpaceBudget;
    readonly disk: { readonly freeBytes: number | undefined };
    readonly pins: Pick<PinWatch, "list">;
    /** Of files that are here: the account of the budget has the lost ones, too. */
    readonly pinnedBytes: () => number;
    readonly recompressedBytes: () => number;
  };
  readonly upstreams: {
    readonly pool: Pick<UpstreamPool, "statuses">;
    readonly lastAnswers: Pick<LastAnswers, "of">;
    readonly rates: Pick<NarRates, "of">;
  };
  readonly transfers: {
    readonly downloads: InFlight;
    readonly uploads: InFlight;
    readonly backlog: () => VerificationBacklog;
    readonly reads: Pick<ActiveReads, "sendCount" | "sends">;
    /** Name of a store path with this NAR. Never rejects. */
    readonly nameOf: (narName: NarName) => Promise<string | undefined>;
  };
  readonly reports: {
    readonly problems: Pick<RecentProblems, "list">;
    readonly members: Pick<MemberReports, "list">;
  };
}

/** Parameters of a request for the figures. */
export interface StatsQuery {
  /** The client's address. */
  readonly client?: string | undefined;
  /** True to list the addresses of clients. Their numbers are there anyway. */
  readonly listsClients?: boolean;
  /** Name of the range of the past. */
  readonly range?: string | undefined;
  /** True for the page: its default range suits the age of the history. */
  readonly isToShow?: boolean;
  /** Leaves out as many of the newest pins. */
  readonly pinsFrom?: number;
}

/** The present figures for this client. Never rejects: an unreadable one is `null`. */
export async function gatherStats(
  sources: StatsSources,
  { client, range, isToShow, pinsFrom, listsClients = false }: StatsQuery = {},
): Promise<Stats> {
  const { process: { version, publicKey, isPrefetching, startedAtMs, nowMs } } = sources;
  const { metrics, history, transfers, storage, reports } = sources;
  const atMs = nowMs();
  const [downloads, uploads, sends, pins] = await Promise.all([
    transferStats(transfers, transfers.downloads, listsClients),
    transferStats(transfers, transfers.uploads, listsClients),
    sendStats(transfers, listsClients),
    pinStats(storage, pinsFrom),
  ]);
  const upstreams = upstreamStats(sources.upstreams);
  const size = sizeStats(sources);
  const lifetime = lifetimeStats(history, startedAtMs);
  const problems = judgedProblems(reports.problems.list(), upstreams, atMs);
  const members = reports.members.list();
  return {
    stats_version: STATS_VERSION,
    version,
    at: iso(atMs),
    started_at: iso(startedAtMs),
    uptime_seconds: Math.max(0, Math.round((atMs - startedAtMs) / 1_000)),
    public_key: publicKey ?? null,
    client: client ?? null,
    verdict: verdictOf({
      ...{ upstreams, size, problems, members, atMs },
      isOfBucket: storage.budget.limit.isOfBucket,
    }),
    requests: { narinfo: requestStats(metrics, "narinfo"), nar: requestStats(metrics, "nar") },
    traffic: trafficStats(metrics),
    lifetime,
    history: historyStats(history, range, isToShow ? rangeToShow(lifetime, atMs) : undefined),
    prefetch: {
      is_on: isPrefetching,
      narinfo: prefetchStats(metrics, "narinfo"),
      nar: prefetchStats(metrics, "nar"),
    },
    size,
    upstreams,
    downloads,
    verification_backlog: backlogStats(transfers.backlog()),
    uploads,
    sends,
    pins,
    problems: problems.map(problemStats),
    members,
  };
}

export function requestStats(
  metrics: StatsSources["metrics"],
  kind: "narinfo" | "nar",
): RequestStats {
  const of = (result: "hit" | "miss" | "joined" | "negative" | "prefetched" | "command") =>
    metrics.value("cache_requests_total", { kind, result });
  const [hits, misses, joined] = [of("hit"), of("miss"), of("joined")];
  const prefetched = of("prefetched");
  // An upstream had a request for prefetched ones, too.
  const all = hits + misses + joined + prefetched;
  const hit_ratio = all === 0 ? null : (hits + joined) / all;
  return {
    ...{ hits, misses, joined, prefetched, absent: of("negative"), commands: of("command") },
    hit_ratio,
  };
}

function prefetchStats(metrics: StatsSources["metrics"], kind: "narinfo" | "nar"): PrefetchStats {
  const of = (result: "used" | "wasted" | "failed" | "skipped") =>
    metrics.value("prefetch_total", { kind, result });
  return { used: of("used"), wasted: of("wasted"), failed: of("failed"), skipped: of("skipped") };
}

export function trafficStats(metrics: StatsSources["metrics"]): TrafficStats {
  const of = (source: "hit" | "miss" | "joined" | "prefetched") =>
    metrics.value("served_bytes_total", { kind: "narinfo", source }) +
    metrics.value("served_bytes_total", { kind: "nar", source });
  const shared_bytes = of("hit") + of("joined");
  const upstream_bytes = metrics.value("upstream_bytes_total", {});
  const served_bytes = shared_bytes + of("miss") + of("prefetched");
  const saved_bytes = shared_bytes - metrics.value("unsaved_bytes_total", {});
  return { served_bytes, upstream_bytes, saved_bytes };
}

function sizeStats({ metrics, storage }: StatsSources): SizeStats {
  const { budget, disk } = storage;
  return {
    used_bytes: budget.usedBytes,
    reserved_bytes: budget.reservedBytes,
    pinned_bytes: storage.pinnedBytes(),
    database_bytes: budget.seen.database.bytes,
    limit_bytes: budget.limitBytes === Infinity ? null : budget.limitBytes,
    limit_source: budget.limit.source,
    disk_reserve_bytes: budget.limit.reserveBytes ?? null,
    disk_free_bytes: disk.freeBytes ?? null,
    evicted_bytes: metrics.value("evicted_bytes_total", {}),
    evicted_entries: metrics.value("evicted_entries_total", {}),
    recompressed_bytes: storage.recompressedBytes(),
  };
}

/** The upstreams' figures, in the order in which the operator gave them. */
export function upstreamStats(
  { pool, lastAnswers, rates }: StatsSources["upstreams"],
): readonly UpstreamStats[] {
  return pool.statuses().map(({ url, isUp, sendsNars, priority }) => {
    const { last, lastNar, lastError, counts, latenciesMs, waits, slowAnswers, lastWait } =
      lastAnswers.of(url);
    return {
      url,
      is_up: isUp,
      sends_nars: sendsNars,
      priority: priority ?? null,
      last_answer: last === undefined ? null : lastAnswerStats(last),
      last_nar_answer: lastNar === undefined ? null : lastAnswerStats(lastNar),
      last_error: lastError === undefined ? null : lastErrorStats(lastError),
      answers: counts,
      waits: {
        ...{ count: waits.count, late: waits.late },
        ...{ total_ms: waits.totalMs, longest_ms: waits.longestMs },
      },
      slow_answers: { count: slowAnswers.count, longest_ms: slowAnswers.longestMs },
      last_wait: lastWait === undefined ? null : {
        ...{ path: lastWait.path, ms: lastWait.ms, at: iso(lastWait.atMs) },
        bytes_per_second: lastWait.bytesPerSecond ?? null,
      },
      nar_bytes_per_second: rates.of(url) ?? null,
      latencies_ms: latenciesMs.map((ms) => Math.round(ms * 10) / 10),
    };
  });
}

function lastAnswerStats({ result, atMs }: LastAnswer) {
  return { result, at: iso(atMs) };
}

function lastErrorStats({ atMs, status, ...error }: LastError) {
  return { ...error, status: status ?? null, at: iso(atMs) };
}

async function transferStats(
  { nameOf }: StatsSources["transfers"],
  inFlight: InFlight,
  listsClients: boolean,
): Promise<TransfersStats> {
  const { count } = inFlight;
  const show = async (one: TransferProgress): Promise<TransferStats> => ({
    nar: one.narName,
    name: await nameOf(one.narName) ?? null,
    state: one.state,
    received_bytes: one.receivedBytes,
    file_bytes: one.fileSize ?? null,
    started_at: iso(one.startedAtMs),
    bytes_per_second: one.bytesPerSecond ?? null,
    seconds_left: secondsLeft(one),
    client_count: one.clients.count,
    clients: listsClients ? one.clients.addresses : [],
  });
  return { count, under_way: await Promise.all(inFlight.progress(TRANSFERS_MAX).map(show)) };
}

function backlogStats({ files, bytes, oldestMs }: VerificationBacklog): BacklogStats {
  return { files, bytes, seconds: Math.floor(oldestMs / 1_000) };
}

/** `null` if the speed or the size is unknown, and while nothing arrives. */
function secondsLeft({ receivedBytes, fileSize, bytesPerSecond }: TransferProgress): number | null {
  if (!bytesPerSecond || fileSize === undefined) return null;
  return Math.ceil(Math.max(0, fileSize - receivedBytes) / bytesPerSecond);
}

async function sendStats(
  { reads, nameOf }: StatsSources["transfers"],
  listsClients: boolean,
): Promise<SendsStats> {
  const under_way = await Promise.all(
    reads.sends(TRANSFERS_MAX).map(async ({ narName, clients }) => ({
      nar: narName,
      name: await nameOf(narName) ?? null,
      client_count: clients.count,
      clients: listsClients ? clients.addresses : [],
    })),
  );
  return { count: reads.sendCount, under_way };
}

async function pinStats(
  { pins }: StatsSources["storage"],
  from: number | undefined,
): Promise<PinStats | null> {
  const watched = await pins.list(from);
  if (watched === undefined) return null;
  const { count, countedAtMs } = watched;
  const roots = watched.roots.map(({ root, name, pinnedAtMs, under, rolls, notes, ...one }) => {
    const size = one.size && countsWithLook(one.size, notes.look);
    return {
      root,
      name: name ?? null,
      pinned_at: iso(pinnedAtMs),
      stored: size?.stored ?? null,
      missing: size?.missing ?? null,
      bytes: size?.bytes ?? null,
      own_bytes: size?.ownBytes ?? null,
      under,
      rolls,
      ...completenessStats(notes, size?.missing),
    };
  });
  return { count, counted_at: countedAtMs === undefined ? null : iso(countedAtMs), roots };
}

function completenessStats(notes: PinNotes, missing: number | undefined) {
  const { keepComplete: keep_complete, complete, look } = shownNotes(notes, missing);
  return { keep_complete, complete, look };
}

function problemStats(
  { firstAtMs, begunAtMs, lastAtMs, overAtMs, ...problem }: Problem,
): ProblemStats {
  const over_at = overAtMs === undefined ? null : iso(overAtMs);
  const times = { first_at: iso(firstAtMs), begun_at: iso(begunAtMs), last_at: iso(lastAtMs) };
  return { ...problem, ...times, over_at };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

type Range = HistoryStats["range"];

const DEFAULT_RANGE: Range = "day";

/** A younger history has a few slots of a day at most: its last hour says more. */
const YOUNG_MS = 2 * 3_600_000;

const SHOWN = Object.keys(FIGURES).filter((figure) => figure !== "since_ms") as Figure[];

/** One range of the past; an unknown name is the default one. */
export function historyStats(
  history: HistoryReader,
  name: string | undefined,
  defaultRange = DEFAULT_RANGE,
): HistoryStats {
  const range = isRange(name) ? name : defaultRange;
  const slots = history.slots(range).map(({ atMs, figures }) => ({
    at: new Date(atMs).toISOString(),
    figures: figures === undefined ? null : figuresOf(figures),
  }));
  return { range, step_seconds: TIERS[range].stepMs / 1_000, slots };
}

/** The default range for people, who see an almost empty chart as a broken one. */
export function rangeToShow({ since }: LifetimeStats, atMs: number): Range {
  return atMs - Date.parse(since) < YOUNG_MS ? "hour" : DEFAULT_RANGE;
}

function isRange(name: string | undefined): name is Range {
  return name !== undefined && name !== "lifetime" && Object.hasOwn(TIERS, name);
}

function figuresOf(figures: ReadonlyMap<Figure, number>) {
  const amounts = SHOWN.map((figure) => [figure, figures.get(figure) ?? 0]);
  return Object.fromEntries(amounts) as NonNullable<HistorySlotStats["figures"]>;
}

/** Figures of all members since the first start of this storage. */
function lifetimeStats(history: HistoryReader, startedAtMs: number): LifetimeStats {
  const figures = history.lifetime();
  const of = (figure: Figure) => figures.get(figure) ?? 0;
  const counted = ["narinfo_hits", "narinfo_misses", "nar_hits", "nar_misses", "absent"] as const;
  return {
    since: new Date(figures.get("since_ms") ?? startedAtMs).toISOString(),
    requests: counted.reduce((sum, figure) => sum + of(figure), 0),
    served_bytes: of("served_bytes"),
    upstream_bytes: of("fetched_bytes"),
    saved_bytes: of("saved_bytes"),
    narinfo: ratioOf(of("narinfo_hits"), of("narinfo_misses")),
    nar: ratioOf(of("nar_hits"), of("nar_misses")),
  };
}

function ratioOf(hits: number, misses: number): LifetimeRequestStats {
  const requests = hits + misses;
  return { requests, hit_ratio: requests === 0 ? null : hits / requests };
}
