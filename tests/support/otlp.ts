/** A record of OTLP as JSON, of any form. */
export type Otlp = ReturnType<typeof JSON.parse>;

/** A span as OTLP's JSON has it, in short. */
export interface TestSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly traceState: string | undefined;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** All spans of these OTLP requests. */
export function spansOf(requests: readonly Otlp[]): readonly TestSpan[] {
  return requests.flatMap(({ resourceSpans = [] }) =>
    resourceSpans.flatMap(({ scopeSpans }: Otlp) =>
      scopeSpans.flatMap(({ spans }: Otlp) =>
        spans.map(({ parentSpanId = "", attributes = [], ...span }: Otlp) => {
          const { traceId, spanId, name, traceState } = span;
          return { traceId, spanId, parentSpanId, name, traceState, facts: factsOf(attributes) };
        })
      )
    )
  );
}

/** All log records, each with its message and ids. */
export function recordsOf(requests: readonly Otlp[]): readonly Otlp[] {
  return requests.flatMap(({ resourceLogs = [] }) =>
    resourceLogs.flatMap(({ scopeLogs }: Otlp) =>
      scopeLogs.flatMap(({ logRecords }: Otlp) =>
        logRecords.map((record: Otlp) => ({ ...record, msg: record.body.stringValue }))
      )
    )
  );
}

/** The service's attributes, of any signal. */
export function resourceOf(request: Otlp): Readonly<Record<string, unknown>> {
  const [first] = request.resourceSpans ?? request.resourceMetrics ?? request.resourceLogs;
  return factsOf(first.resource.attributes);
}

/** The samples of one OTLP metrics request, spelled as Prometheus spells them. */
export function samplesOf(request: Otlp): ReadonlyMap<string, number> {
  const samples = new Map<string, number>();
  for (const metric of request.resourceMetrics[0].scopeMetrics[0].metrics) {
    const points = (metric.sum ?? metric.gauge ?? metric.histogram).dataPoints ?? [];
    for (const point of points) {
      const labels = Object.entries(factsOf(point.attributes ?? []))
        .map(([name, value]) => `${name}="${value}"`).join(",");
      const series = labels === "" ? "" : `{${labels}}`;
      if (metric.histogram === undefined) {
        samples.set(metric.name + series, Number(point.asDouble ?? point.asInt ?? 0));
      } else {
        samples.set(`${metric.name}_sum${series}`, point.sum ?? 0);
        samples.set(`${metric.name}_count${series}`, Number(point.count ?? 0));
      }
    }
  }
  return samples;
}

function factsOf(attributes: readonly Otlp[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    attributes.map(({ key, value }: Otlp) => [key, Object.values(value)[0]]),
  );
}
