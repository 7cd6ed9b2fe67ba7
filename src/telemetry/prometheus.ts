import { type Metric, prometheusContentType, Registry } from "prom-client";
import type { Point, Snapshot } from "./metrics.ts";
import type { Labels } from "./instruments/instrument.ts";

export const PROMETHEUS_TYPE = prometheusContentType;

interface Value {
  readonly metricName: string;
  readonly labels?: { readonly le: string | number };
  /** The labels of a series are one object for all scrapes, so their text is cached by it. */
  readonly sharedLabels: Labels;
  readonly value: number;
}

/** All instruments in the Prometheus text format. */
export async function prometheusText(snapshots: readonly Snapshot[]): Promise<string> {
  const registry = new Registry();
  for (const { name, help, type, points } of snapshots) {
    const values = points.flatMap((point) => valuesOf(name, point));
    // The registry reads only these. Its own classes would store every value twice.
    const metric = { name, get: () => ({ name, help, type, values }) };
    registry.registerMetric(metric as unknown as Metric);
  }
  return await registry.metrics();
}

function valuesOf(name: string, point: Point): readonly Value[] {
  const { labels } = point;
  if ("value" in point) return [{ metricName: name, sharedLabels: labels, value: point.value }];
  const { bounds, counts, sum } = point;
  let below = 0;
  const buckets = counts.map((count, at) => {
    below += count;
    const le = bounds[at] ?? "+Inf";
    return { metricName: `${name}_bucket`, labels: { le }, sharedLabels: labels, value: below };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, sharedLabels: labels, value: sum },
    { metricName: `${name}_count`, sharedLabels: labels, value: below },
  ];
}
