import denoJson from "../../deno.json" with { type: "json" };
import { X509Certificate } from "node:crypto";
import { cpuUsage } from "node:process";
import type { Settings } from "../config/options.ts";
import { clock, dice } from "../runtime/current.ts";
import { DATABASE, DISK, STORAGE } from "../telemetry/events.ts";
import type { Group } from "../telemetry/instruments/instrument.ts";
import type { BackEnd } from "../telemetry/instruments/operation_labels.ts";
import type { LineQueue } from "../telemetry/line_queue.ts";
import { createLogger, type Logger } from "../telemetry/logger.ts";
import { Metrics } from "../telemetry/metrics.ts";
import type { Otel } from "../telemetry/otel/otel.ts";
import { isSdkDisabled } from "../telemetry/otel/sdk_switch.ts";
import { quietWhileAway } from "../telemetry/quiet_while_away.ts";
import { type Problem, RecentProblems } from "../telemetry/recent_problems.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import {
  type HttpUpstreamSettings,
  type UpstreamTrace,
  upstreamTraceOf,
} from "../upstream/http/upstream_fetch.ts";
import type { StorePlaces } from "./back_ends/back_ends.ts";
import { caCertificates } from "./upstream_settings.ts";

export interface TelemetryInputs {
  readonly settings: Settings;
  readonly upstreams: readonly HttpUpstreamSettings[];
  readonly queue: LineQueue;
}

/** The log, metrics and traces. */
export interface Telemetry {
  readonly log: Logger;
  /** Recent warnings and errors of the log. */
  readonly problems: RecentProblems;
  readonly metrics: Metrics;
  /** `undefined`: no tracing. */
  readonly tracer: Tracer | undefined;
  readonly upstreamTrace: UpstreamTrace | undefined;
  /** Exports the rest. */
  stop(): Promise<void>;
}

/** Starts the log, the metrics and, if enabled, OpenTelemetry. */
export async function startTelemetry(parts: TelemetryInputs): Promise<Telemetry> {
  const { settings, upstreams, queue } = parts;
  const level = settings["log-level"];
  const plainLog = createLogger(level, queue);
  const exports = settings["otel.enabled"] && !isDisabledByEnvironment(plainLog);
  const groups: readonly Group[] = [
    ...settings["analytics.reporting-enabled"] ? ["analytics" as const] : [],
    ...exports ? ["otel" as const] : [],
    ...settings["cache.redis-addrs"].length > 0 ? ["redis" as const] : [],
  ];
  const metrics = new Metrics({ groups, domains: { upstreams: upstreams.map(({ url }) => url) } });
  readProcess(metrics, denoJson.version);
  const problems = new RecentProblems(() => clock.wallMs());
  const watched = (quiet: Logger) =>
    quietWhileAway({ log: problems.watch(quiet), quiet, nowMs: () => clock.wallMs() });
  if (!exports) {
    const log = watched(plainLog);
    const nothing = { tracer: undefined, upstreamTrace: undefined };
    return { log, problems, metrics, ...nothing, stop: () => Promise.resolve() };
  }
  // Errors of OpenTelemetry go to the log alone.
  const otel = await openTelemetry(parts, metrics, plainLog);
  const log = watched(createLogger(level, queue, otel));
  const { tracer } = otel;
  const upstreamTrace = upstreamTraceOf(tracer, settings["otel.propagate-to-upstreams"]);
  return { log, problems, metrics, tracer, upstreamTrace, stop: () => otel.stop() };
}

const variable = (name: string) => Deno.env.get(name) || undefined;

/** True if OpenTelemetry's own variable disables it, which is common for many services at once. */
function isDisabledByEnvironment(log: Logger): boolean {
  const isDisabled = isSdkDisabled(
    variable,
    (name) => log.event("variable-invalid", { variable: name }),
  );
  if (isDisabled) log.event("opentelemetry-disabled", { reason: "OTEL_SDK_DISABLED=true" });
  return isDisabled;
}

/** Loads the SDK on demand, as it takes time and memory. */
async function openTelemetry(
  { settings, queue }: TelemetryInputs,
  metrics: Metrics,
  log: Logger,
): Promise<Otel> {
  const [{ startOtel }, { grpcSenders }, { lineSenders }, { createGrpcTransport }] = await Promise
    .all([
      import("../telemetry/otel/otel.ts"),
      import("../telemetry/otel/senders.ts"),
      import("../telemetry/otel/line_senders.ts"),
      import("../telemetry/otel/grpc_transport.ts"),
    ]);
  const url = settings["otel.grpc-url"];
  const transport = url === undefined
    ? undefined
    : createGrpcTransport(url, await caCertificates(settings));
  const otel = startOtel({
    senders: transport === undefined ? lineSenders(queue) : grpcSenders(transport),
    metrics,
    service: { version: denoJson.version, instanceId: dice.uuid() },
    variable,
    nowMs: () => clock.wallMs(),
    losses: { receiver: url ?? "standard output", log },
    reportInvalid: (name) => log.event("variable-invalid", { variable: name }),
  });
  return {
    tracer: otel.tracer,
    copyLog: otel.copyLog,
    async stop() {
      await otel.stop();
      transport?.[Symbol.dispose]();
    },
  };
}

/** Registers the gauges of the process, and the build info. */
function readProcess(metrics: Metrics, version: string): void {
  const startedAtMs = clock.wallMs() - clock.nowMs();
  metrics.gauge("build_info", { version, deno: Deno.version.deno }, () => 1);
  metrics.gauge("process_start_time_seconds", {}, () => startedAtMs / 1_000);
  metrics.gauge("process_cpu_seconds_total", {}, () => {
    const { user, system } = cpuUsage();
    return (user + system) / 1_000_000;
  });
  metrics.gauge("process_resident_memory_bytes", {}, () => Deno.memoryUsage().rss);
  metrics.gauge("process_heap_bytes", {}, () => Deno.memoryUsage().heapUsed);
  metrics.gauge("process_open_fds", {}, openFiles);
}

function openFiles(): number {
  try {
    return [...Deno.readDirSync("/proc/self/fd")].length;
  } catch {
    // Other systems than Linux.
    return 0;
  }
}

interface BackEndGaugesDeps {
  readonly metrics: Pick<Metrics, "gauge">;
  /** Present problems: the same outages as on the page. */
  readonly problems: Pick<RecentProblems, "list">;
  readonly nars: Pick<StorePlaces["nars"], "kind">;
  readonly hasRedis: boolean;
}

/** Registers the gauge of each back end: 0 during an outage of it. */
export function backEndGauges({ metrics, problems, nars, hasRedis }: BackEndGaugesDeps): void {
  // A folder fails with its disk. Beside a bucket, the disk has partial files alone.
  const ofStorage: readonly string[] = nars.kind === "local" ? [STORAGE, DISK] : [STORAGE];
  const outages: Readonly<Record<BackEnd, (problem: Problem) => boolean>> = {
    database: ({ part }) => part === DATABASE,
    storage: ({ part }) => ofStorage.includes(part),
    // A lock that another member keeps is of the same kind, and no outage of Redis.
    redis: ({ event }) => event === "redis-away",
  };
  const isUp = (backend: BackEnd) =>
    !problems.list().some((one) => one.overAtMs === undefined && outages[backend](one));
  for (const backend of ["database", "storage", ...hasRedis ? ["redis" as const] : []] as const) {
    metrics.gauge("backend_up", { backend }, () => Number(isUp(backend)));
  }
}

/** Gauges the expiry of the certificate in use. Call it with each certificate, as PEM. */
export function certificateGauge(metrics: Pick<Metrics, "gauge">): (pem: string) => void {
  return (pem) => {
    const expirySeconds = expirySecondsOf(pem);
    if (expirySeconds === undefined) return;
    metrics.gauge("tls_certificate_expiry_timestamp_seconds", {}, () => expirySeconds);
  };
}

/** Expiry of the first certificate, the server's own. `undefined` if the time is unreadable. */
function expirySecondsOf(pem: string): number | undefined {
  try {
    const ms = Date.parse(new X509Certificate(pem).validTo);
    return Number.isNaN(ms) ? undefined : ms / 1_000;
  } catch {
    // TLS works all the same: another library reads the certificate for it.
    return undefined;
  }
}
