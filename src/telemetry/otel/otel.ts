import { ROOT_CONTEXT, SeverityNumber, trace, TraceFlags } from "@opentelemetry/api";
import { LoggerProvider, type ReadableLogRecord } from "@opentelemetry/sdk-logs";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { within } from "../../base/deadline.ts";
import { messageOf } from "../../base/failure.ts";
import type { LogCopy, LogLevel } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { Tracer } from "../tracer.ts";
import {
  type Complain,
  metricsEveryMs,
  resourceOf,
  samplingOf,
  type Service,
  type Variable,
} from "./environment.ts";
import { ExportQueue } from "./export_queue.ts";
import { metricData } from "./metric_data.ts";
import { createOtelTracer } from "./otel_tracer.ts";
import type { Senders } from "./senders.ts";

const TRACES_DELAY_MS = 2_000;
const LOGS_DELAY_MS = 1_000;

/** What is left at the end is sent within this; then the process goes. */
const FLUSH_MAX_MS = 3_000;

const SEVERITIES = {
  debug: SeverityNumber.DEBUG,
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
} as const satisfies Readonly<Record<LogLevel, SeverityNumber>>;

export interface OtelDeps {
  readonly senders: Senders;
  readonly metrics: Pick<Metrics, "snapshot" | "series">;
  readonly service: Service;
  readonly variable: Variable;
  readonly nowMs: () => number;
  readonly notUnderstood: Complain;
  /** Told once a signal that records are lost. */
  readonly complain: (msg: string, facts: Readonly<Record<string, string>>) => void;
}

export interface Otel {
  readonly tracer: Tracer;
  /** Takes every line of the log. */
  readonly copyLog: LogCopy;
  /** Sends what is left, for a limited time. */
  stop(): Promise<void>;
}

type Signal = "traces" | "metrics" | "logs";

/** The three signals of OpenTelemetry. Nothing that it does makes anybody wait. */
export function startOtel(deps: OtelDeps): Otel {
  const { senders, metrics, variable, nowMs, notUnderstood } = deps;
  const resource = resourceOf(variable, deps.service, notUnderstood);
  const dropped = dropCounters(deps);
  const spans = new ExportQueue<ReadableSpan>({
    send: senders.traces,
    dropped: dropped.traces,
    delayMs: TRACES_DELAY_MS,
  });
  const records = new ExportQueue<ReadableLogRecord>({
    send: senders.logs,
    dropped: dropped.logs,
    delayMs: LOGS_DELAY_MS,
  });
  const startMs = nowMs();
  const sendMetrics = async () => {
    const snapshots = metrics.snapshot();
    try {
      await senders.metrics(metricData(snapshots, resource, { startMs, endMs: nowMs() }));
    } catch (error) {
      dropped.metrics(snapshots.length, messageOf(error));
    }
  };
  const timer = setInterval(sendMetrics, metricsEveryMs(variable, notUnderstood));
  const sampling = samplingOf(variable, notUnderstood);
  const { version } = deps.service;
  return {
    tracer: createOtelTracer({ resource, version, sampling, ended: (span) => spans.add(span) }),
    copyLog: logCopy(new LoggerProvider({ resource, processors: [intoRecords(records)] })),
    async stop() {
      clearInterval(timer);
      await within(Promise.all([spans.flush(), records.flush(), sendMetrics()]), FLUSH_MAX_MS);
    },
  };
}

/** By signal: counts what is lost, and says so the first time. */
function dropCounters({ metrics, complain }: OtelDeps) {
  const counterOf = (signal: Signal) => {
    const series = metrics.series("telemetry_dropped_total", { signal });
    let said = false;
    return (count: number, reason: string) => {
      series.add(count);
      if (said) return;
      said = true;
      complain("telemetry dropped", { signal, reason, more: "larder_telemetry_dropped_total" });
    };
  };
  return { traces: counterOf("traces"), metrics: counterOf("metrics"), logs: counterOf("logs") };
}

function intoRecords(queue: ExportQueue<ReadableLogRecord>) {
  return {
    onEmit: (record: ReadableLogRecord) => queue.add(record),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
}

function logCopy(provider: LoggerProvider): LogCopy {
  const logger = provider.getLogger("larder");
  return (level, msg, facts, ids) =>
    logger.emit({
      severityNumber: SEVERITIES[level],
      severityText: level,
      body: msg,
      attributes: { ...facts },
      ...(ids === undefined ? {} : {
        context: trace.setSpanContext(ROOT_CONTEXT, {
          traceId: ids.trace_id,
          spanId: ids.span_id,
          traceFlags: TraceFlags.SAMPLED,
        }),
      }),
    });
}
