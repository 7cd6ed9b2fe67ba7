import { type HrTime, ValueType } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import type { Point, Snapshot } from "../families.ts";

/** The time that the values cover, in ms since 1970. */
export interface Period {
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
