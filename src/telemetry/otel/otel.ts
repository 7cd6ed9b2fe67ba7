import {
  type HrTime,
  ROOT_CONTEXT,
  SeverityNumber,
  trace,
  TraceFlags,
  ValueType,
} from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import { LoggerProvider, type ReadableLogRecord } from "@opentelemetry/sdk-logs";
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { messageOf } from "../../base/failure.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Metrics, Point, Series, Snapshot } from "../metrics.ts";
import type { LogCopy, Logger, LogLevel } from "../logger.ts";
import type { Tracer } from "../tracer.ts";
import { metricsEveryMs, resourceOf, samplingOf, type Service } from "./environment.ts";
import { createOtelTracer } from "./otel_tracer.ts";
import type { ReportInvalid, Variable } from "./sdk_switch.ts";
import type { Senders } from "./senders.ts";

const TRACES_DELAY_MS = 2_000;
const LOGS_DELAY_MS = 1_000;

/** Timeout of the last export. The process ends 3 s after its signal. */
const FLUSH_MAX_MS = 2_700;

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
  readonly reportInvalid: ReportInvalid;
  readonly losses: LossesReport;
}

interface LossesReport {
  /** The receiver, for people. */
  readonly receiver: string;
  /** Has an event for each outage and signal with lost records. */
  readonly log: Pick<Logger, "event">;
}

export interface Otel {
  readonly tracer: Tracer;
  /** Receives every line of the log. */
  readonly copyLog: LogCopy;
  /** Exports the rest, within a timeout. */
  stop(): Promise<void>;
}

type Signal = "traces" | "metrics" | "logs";

/** The three signals of OpenTelemetry. No caller ever waits for an export. */
export function startOtel(deps: OtelDeps): Otel {
  const { senders, metrics, variable, nowMs, reportInvalid } = deps;
  const resource = resourceOf(variable, deps.service, reportInvalid);
  const spans = new ExportQueue<ReadableSpan>({
    send: senders.traces,
    ...countedBy(lossesOf(deps, "traces")),
    delayMs: TRACES_DELAY_MS,
  });
  const records = new ExportQueue<ReadableLogRecord>({
    send: senders.logs,
    ...countedBy(lossesOf(deps, "logs")),
    delayMs: LOGS_DELAY_MS,
  });
  const figures = startMetrics({
    snapshot: () => metrics.snapshot(),
    send: (snapshots, period) => senders.metrics(metricData(snapshots, resource, period)),
    ...countedBy(lossesOf(deps, "metrics")),
    everyMs: metricsEveryMs(variable, reportInvalid),
    nowMs,
  });
  const sampling = samplingOf(variable, reportInvalid);
  const { version } = deps.service;
  return {
    tracer: createOtelTracer({
      resource,
      version,
      sampling,
      nowMs,
      ended: (span) => spans.add(span),
    }),
    copyLog: logCopy(new LoggerProvider({ resource, processors: [intoRecords(records)] })),
    async stop() {
      await clock.within(
        Promise.all([spans.flush(), records.flush(), figures.stop()]),
        FLUSH_MAX_MS,
      );
    },
  };
}

function lossesOf({ metrics, losses }: OtelDeps, signal: Signal): Losses {
  const { receiver, log } = losses;
  return new Losses({
    counter: metrics.series("telemetry_dropped_total", { signal }),
    lost(reason) {
      const more = "larder_telemetry_dropped_total";
      log.event("telemetry-dropped", { signal, receiver, reason, more });
    },
  });
}

/** The callbacks of a queue that count its losses. */
function countedBy(losses: Losses): Pick<ExportQueueDeps<unknown>, "dropped" | "delivered"> {
  return {
    dropped: (count, reason) => losses.dropped(count, reason),
    delivered: () => losses.delivered(),
  };
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

interface LossesDeps {
  /** Called with the first loss of an outage. */
  readonly lost: (reason: string) => void;
  readonly counter: Pick<Series, "add">;
}

/**
 * Counts the lost records of one signal, and logs each outage once. An OutageLog would log each
 * repeat at level debug: one record more for the queue that loses them.
 */
export class Losses {
  readonly #deps: LossesDeps;
  #isOut = false;

  constructor(deps: LossesDeps) {
    this.#deps = deps;
  }

  dropped(count: number, reason: string): void {
    this.#deps.counter.add(count);
    if (this.#isOut) return;
    this.#isOut = true;
    this.#deps.lost(reason);
  }

  /** Ends an outage: records arrived without a loss. */
  delivered(): void {
    this.#isOut = false;
  }
}

interface MetricExportDeps {
  readonly snapshot: () => readonly Snapshot[];
  /** Rejects if the export failed. Must have its own timeout. */
  readonly send: (snapshots: readonly Snapshot[], period: Period) => Promise<void>;
  readonly dropped: (count: number, reason: string) => void;
  readonly delivered: () => void;
  readonly everyMs: number;
  readonly nowMs: () => number;
}

interface MetricExport {
  /** Resolves once the last values are sent or lost. */
  stop(): Promise<void>;
}

/** Exports all metrics at an interval, one export at a time: a slow receiver gets fewer. */
export function startMetrics(deps: MetricExportDeps): MetricExport {
  const { snapshot, dropped, delivered, nowMs } = deps;
  const startMs = nowMs();
  let sending: Promise<void> | undefined;
  const send = async () => {
    const snapshots = snapshot();
    try {
      await deps.send(snapshots, { startMs, endMs: nowMs() });
      delivered();
    } catch (error) {
      dropped(snapshots.length, messageOf(error));
    }
  };
  const timer = clock.every(deps.everyMs, () => {
    sending ??= send().finally(() => sending = undefined);
  });
  return {
    async stop() {
      timer.cancel();
      await sending;
      await send();
    },
  };
}

/** Limit of waiting records. A server under full load makes them in a second or two. */
const WAITING_MAX = 4_096;

const FULL = `${WAITING_MAX} records wait already`;

/** Records in one export. */
const BATCH_MAX = 512;

interface ExportQueueDeps<Item> {
  /** Rejects if the export failed. Must have its own timeout. */
  readonly send: (items: readonly Item[]) => Promise<void>;
  /** Called with lost records. */
  readonly dropped: (count: number, reason: string) => void;
  /** Called after an export without a loss meanwhile. */
  readonly delivered: () => void;
  /** Time that a record waits for others. */
  readonly delayMs: number;
}

/**
 * A queue of records for a collector that may be absent, slow or frozen. Adding never waits. It
 * drops and counts records that do not fit, or do not arrive.
 */
export class ExportQueue<Item> {
  readonly #deps: ExportQueueDeps<Item>;
  #waiting: Item[] = [];
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;
  #lostCount = 0;

  constructor(deps: ExportQueueDeps<Item>) {
    this.#deps = deps;
  }

  add(item: Item): void {
    if (this.#waiting.length >= WAITING_MAX) return this.#lose(1, FULL);
    this.#waiting.push(item);
    if (this.#waiting.length >= BATCH_MAX) this.#start();
    else if (this.#sending === undefined) {
      this.#timer ??= clock.after(this.#deps.delayMs, () => this.#start());
    }
  }

  /** Resolves when all added records are sent or lost. */
  async flush(): Promise<void> {
    this.#start();
    await this.#sending;
  }

  #start(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#sending ??= this.#drain().finally(() => this.#sending = undefined);
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_MAX);
      const lostBefore = this.#lostCount;
      try {
        await this.#deps.send(batch);
        if (this.#lostCount === lostBefore) this.#deps.delivered();
      } catch (error) {
        this.#lose(batch.length, messageOf(error));
      }
    }
  }

  #lose(count: number, reason: string): void {
    this.#lostCount += count;
    this.#deps.dropped(count, reason);
  }
}

/** The time that the values cover, in ms since 1970. */
interface Period {
  readonly startMs: number;
  readonly endMs: number;
}

/** The instruments in OTLP's form, with the names, labels and values of `/metrics`. */
export function metricData(
  snapshots: readonly Snapshot[],
  resource: Resource,
  period: Period,
): ResourceMetrics {
  const metrics = snapshots.map((snapshot) => dataOf(snapshot, period));
  return { resource, scopeMetrics: [{ scope: { name: "larder" }, metrics }] };
}

function dataOf({ name, help, type, points }: Snapshot, period: Period): MetricData {
  const base = {
    descriptor: { name, description: help, unit: "", valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const at = { startTime: hrTime(period.startMs), endTime: hrTime(period.endMs) };
  if (type === "histogram") {
    const dataPoints = points.flatMap((point) => histogramPoint(point, at));
    return { ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = points.flatMap((point) =>
    "value" in point ? [{ ...at, attributes: point.labels, value: point.value }] : []
  );
  return type === "counter"
    ? { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...base, dataPointType: DataPointType.GAUGE, dataPoints };
}

function histogramPoint(
  point: Point,
  at: { readonly startTime: HrTime; readonly endTime: HrTime },
) {
  if ("value" in point) return [];
  const { labels: attributes, bounds, counts, sum } = point;
  const count = counts.reduce((total, one) => total + one, 0);
  const buckets = { boundaries: [...bounds], counts: [...counts] };
  return [{ ...at, attributes, value: { buckets, sum, count } }];
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000_000)];
}
