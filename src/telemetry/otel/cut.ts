import type { Attributes } from "@opentelemetry/api";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import type { ReadableLogRecord } from "@opentelemetry/sdk-logs";
import type { MetricData } from "@opentelemetry/sdk-metrics";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";

/** Size limits of a record. */
export interface Bounds {
  /** Maximum length of a text or a name. */
  readonly charsMax: number;
  /** Maximum attributes of a record, and of its resource. */
  readonly attributesMax: number;
}

/**
 * Bounds from mild to strict. Under the last ones any record is below 30 KB: twice 32 attributes of
 * 64 characters, at six bytes each, and punctuation.
 */
export const BOUNDS: readonly Bounds[] = [
  { charsMax: 4_096, attributesMax: 128 },
  { charsMax: 512, attributesMax: 64 },
  { charsMax: 32, attributesMax: 32 },
];

/** The span within `bounds`. Drops events and links, which larder's spans do not have. */
export function cutSpan(span: ReadableSpan, bounds: Bounds): ReadableSpan {
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

export function cutLogRecord(record: ReadableLogRecord, bounds: Bounds): ReadableLogRecord {
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

export function cutPoints(metric: MetricData, bounds: Bounds): MetricData {
  const dataPoints = metric.dataPoints.map((point) => {
    return { ...point, attributes: cutAttributes(point.attributes, bounds).kept };
  });
  return withPoints(metric, dataPoints);
}

/** The metric with these points instead of its own. */
export function withPoints(
  metric: MetricData,
  dataPoints: readonly MetricData["dataPoints"][number][],
): MetricData {
  // The compiler cannot prove that they are of one kind.
  return { ...metric, dataPoints } as MetricData;
}

export function cutResource({ attributes }: Resource, bounds: Bounds): Resource {
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
