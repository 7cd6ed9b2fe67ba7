import {
  type ISerializer,
  JsonLogsSerializer,
  JsonMetricsSerializer,
  JsonTraceSerializer,
} from "@opentelemetry/otlp-transformer";
import type { MetricData, ResourceMetrics } from "@opentelemetry/sdk-metrics";
import type { LineSink } from "../logger.ts";
import {
  BOUNDS,
  type Bounds,
  cutLogRecord,
  cutPoints,
  cutResource,
  cutSpan,
  withPoints,
} from "./cut.ts";
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
