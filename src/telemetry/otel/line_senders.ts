import type { Attributes } from "@opentelemetry/api";
import {
  type ISerializer,
  JsonLogsSerializer,
  JsonMetricsSerializer,
  JsonTraceSerializer,
} from "@opentelemetry/otlp-transformer";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import type { ReadableLogRecord } from "@opentelemetry/sdk-logs";
import type { MetricData, ResourceMetrics } from "@opentelemetry/sdk-metrics";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import type { LineSink } from "../logger.ts";
import type { Senders } from "./senders.ts";

/** journald splits lines at 48 KiB (`LineMax=`), which breaks their JSON. */
const LINE_BYTES_MAX = 48_000;

const DECODER = new TextDecoder();

/**
 * Writes OTLP's JSON between the lines of the log. Each line is one request with one span, log line
 * or metric. It cuts long records, and splits long metrics.
 */
export function lineSenders(sink: LineSink): Senders {
  const each = <Item>(
    serializer: ISerializer<Item[], unknown>,
    cut: (item: Item, bounds: Bounds) => Item,
  ) =>
  async (items: readonly Item[]) => {
    for (const item of items) {
      const line = lineOf(serializer, [item]) ??
        firstLine((bounds) => lineOf(serializer, [cut(item, bounds)]));
      sink.write(line);
    }
  };
  return {
    traces: each(JsonTraceSerializer, cutSpan),
    logs: each(JsonLogsSerializer, cutLogRecord),
    metrics: async (metrics) => {
      for (const line of metricLines(metrics)) sink.write(line);
    },
  };
}

function* metricLines({ resource, scopeMetrics }: ResourceMetrics): Iterable<string> {
  for (const { scope, metrics } of scopeMetrics) {
    const lineWith = (metric: MetricData, bounds?: Bounds) =>
      lineOf(JsonMetricsSerializer, {
        resource: bounds === undefined ? resource : cutResource(resource, bounds),
        scopeMetrics: [{ scope, metrics: [metric] }],
      });
    for (const metric of metrics) yield* linesOf(metric, lineWith);
  }
}

/** One line if it fits; else several, which share the points. */
function* linesOf(
  metric: MetricData,
  lineWith: (metric: MetricData, bounds?: Bounds) => string | undefined,
): Iterable<string> {
  const whole = lineWith(metric);
  if (whole !== undefined) return yield whole;
  const points = metric.dataPoints;
  if (points.length <= 1) {
    return yield firstLine((bounds) => lineWith(cutPoints(metric, bounds), bounds));
  }
  const half = Math.ceil(points.length / 2);
  yield* linesOf(withPoints(metric, points.slice(0, half)), lineWith);
  yield* linesOf(withPoints(metric, points.slice(half)), lineWith);
}

/** The line under the mildest bounds that make it short enough. */
function firstLine(lineIn: (bounds: Bounds) => string | undefined): string {
  for (const bounds of BOUNDS) {
    const line = lineIn(bounds);
    if (line !== undefined) return line;
  }
  throw new Error("Cannot write telemetry: a record is too long for a line");
}

/** `undefined` if the line is too long. */
function lineOf<Request>(
  serializer: ISerializer<Request, unknown>,
  request: Request,
): string | undefined {
  const bytes = serializer.serializeRequest(request);
  if (bytes === undefined || bytes.length >= LINE_BYTES_MAX) return undefined;
  return `${DECODER.decode(bytes)}\n`;
}

/** Size limits of a record. */
interface Bounds {
  /** Maximum length of a text or a name. */
  readonly charsMax: number;
  /** Maximum attributes of a record, and of its resource. */
  readonly attributesMax: number;
}

/**
 * Bounds from mild to strict. Under the last ones any record is below 30 KB: twice 32 attributes of
 * 64 characters, at six bytes each, and punctuation.
 */
const BOUNDS: readonly Bounds[] = [
  { charsMax: 4_096, attributesMax: 128 },
  { charsMax: 512, attributesMax: 64 },
  { charsMax: 32, attributesMax: 32 },
];

/** The span within `bounds`. Drops events and links, which larder's spans do not have. */
function cutSpan(span: ReadableSpan, bounds: Bounds): ReadableSpan {
  const { kind, parentSpanContext, startTime, endTime, duration, ended, status } = span;
  const { kept, dropped } = cutAttributes(span.attributes, bounds);
  const message = cutText(status.message ?? "", bounds);
  return {
    ...{ kind, startTime, endTime, duration, ended },
    ...(parentSpanContext === undefined ? {} : { parentSpanContext }),
    spanContext: () => span.spanContext(),
    name: cutText(span.name, bounds),
    status: { code: status.code, ...(message === "" ? {} : { message }) },
    attributes: kept,
    droppedAttributesCount: span.droppedAttributesCount + dropped,
    ...{ events: [], links: [], droppedEventsCount: 0, droppedLinksCount: 0 },
    resource: cutResource(span.resource, bounds),
    instrumentationScope: span.instrumentationScope,
  };
}

function cutLogRecord(record: ReadableLogRecord, bounds: Bounds): ReadableLogRecord {
  const { hrTime, hrTimeObserved, severityText, severityNumber, spanContext } = record;
  const { kept, dropped } = cutAttributes(record.attributes, bounds);
  return {
    ...{ hrTime, hrTimeObserved, instrumentationScope: record.instrumentationScope },
    ...(severityText === undefined ? {} : { severityText }),
    ...(severityNumber === undefined ? {} : { severityNumber }),
    ...(spanContext === undefined ? {} : { spanContext }),
    body: cutText(String(record.body), bounds),
    attributes: kept,
    droppedAttributesCount: record.droppedAttributesCount + dropped,
    resource: cutResource(record.resource, bounds),
  };
}

function cutPoints(metric: MetricData, bounds: Bounds): MetricData {
  const dataPoints = metric.dataPoints.map((point) => {
    return { ...point, attributes: cutAttributes(point.attributes, bounds).kept };
  });
  return withPoints(metric, dataPoints);
}

/** The metric with these points instead of its own. */
function withPoints(
  metric: MetricData,
  dataPoints: readonly MetricData["dataPoints"][number][],
): MetricData {
  // The compiler cannot prove that they are of one kind.
  return { ...metric, dataPoints } as MetricData;
}

function cutResource({ attributes }: Resource, bounds: Bounds): Resource {
  return resourceFromAttributes(cutAttributes(attributes, bounds).kept);
}

/** Attributes within `bounds`; larder's are texts, numbers and booleans. */
function cutAttributes(attributes: Readonly<Record<string, unknown>>, bounds: Bounds) {
  const entries = Object.entries(attributes);
  const kept: Attributes = {};
  for (const [key, value] of entries.slice(0, bounds.attributesMax)) {
    const isShort = typeof value === "number" || typeof value === "boolean";
    kept[cutText(key, bounds)] = isShort ? value : cutText(String(value), bounds);
  }
  return { kept, dropped: entries.length - Object.keys(kept).length };
}

/** Never cuts within a surrogate pair: many readers reject half of one. */
function cutText(text: string, { charsMax }: Bounds): string {
  return text.slice(0, charsMax).toWellFormed();
}
