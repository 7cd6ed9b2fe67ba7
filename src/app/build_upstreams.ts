import type { PathRecord } from "../cache/nar/path_record.ts";
import type { NarName } from "../nix/nar_name.ts";
import { nameOfBaseName, type StorePathHash } from "../nix/store_path.ts";
import { TrustedKeys } from "../nix/trusted_keys.ts";
import type { HttpClient } from "../runtime/net.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { DecodeBody } from "../upstream/upstream.ts";
import {
  answerTimeoutOf,
  createUpstreamClient,
  type HttpUpstreamSettings,
} from "../upstream/http/upstream_fetch.ts";
import { HttpNarSource } from "../upstream/http/http_nar_source.ts";
import {
  HttpNarinfoFetcher,
  HttpNarinfoSource,
  type UpstreamRoot,
} from "../upstream/http/http_narinfo_source.ts";
import type { NarinfoFetcher } from "../upstream/http/narinfo_fetcher.ts";
import { createUpstreamLog, EmptyRoots } from "../upstream/upstream_log.ts";
import { LastAnswers } from "../upstream/last_answers.ts";
import { NarRates, type RivalWait } from "../upstream/pooled_upstream.ts";
import type { Loops } from "../upstream/loops.ts";
import {
  meteredNarinfoSource,
  tracedNarinfoSource,
  tracedNarSource,
} from "../upstream/watched_sources.ts";
import { queuedNarinfoSource } from "../upstream/upstream_queue.ts";
import { UpstreamPool } from "../upstream/upstream_pool.ts";
import type { AskedUpstreams } from "../upstream/asked_upstreams.ts";
import type { AppParts } from "./app_parts.ts";
import { WorkerNarinfos } from "./workers/worker_narinfos.ts";

/** Wires the upstreams: their narinfos, their NARs, and their health. */
export function buildUpstreams(
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
