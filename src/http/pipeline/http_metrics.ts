import {
  type Method,
  METHODS,
  type Outcome,
  UNMATCHED_ROUTE,
} from "../../telemetry/instruments/http_labels.ts";
import type { HistogramSeries, Metrics, Series } from "../../telemetry/metrics.ts";
import type { Route } from "../routes/router.ts";

/** A finished request. */
export interface FinishedRequest {
  /** `undefined` for a path without a route. */
  readonly route: Route | undefined;
  readonly method: string;
  readonly status: number;
  readonly outcome: Outcome;
  readonly seconds: number;
}

/** Usual answers to invalid requests, and to paths without a route. */
const UNMATCHED: readonly (readonly [Method, number])[] = [
  ["GET", 400],
  ["GET", 404],
  ["OTHER", 400],
];

/** The series of one method of one route. */
interface MethodSeries {
  duration: HistogramSeries | undefined;
  /** Complete answers, by status. */
  readonly complete: Map<number, Series>;
  readonly labels: { readonly method: Method; readonly route: string };
}

/**
 * Counts requests. Series that a route normally answers exist at zero from the start, as do the
 * durations of narinfos and NARs. Others begin with their first request.
 */
export class HttpMetrics {
  readonly #metrics: Metrics;
  readonly #series = new Map<Route | undefined, ReadonlyMap<string, MethodSeries>>();
  #active = 0;

  constructor(metrics: Metrics, routes: readonly Route[]) {
    this.#metrics = metrics;
    metrics.gauge("http_server_active_requests", {}, () => this.#active);
    for (const route of [...routes, undefined]) {
      this.#series.set(route, new Map(METHODS.map((one) => [one, this.#seriesOf(route, one)])));
    }
  }

  begin(): void {
    this.#active++;
  }

  end({ route, method, status, outcome, seconds }: FinishedRequest): void {
    this.#active--;
    const byMethod = this.#series.get(route);
    const series = byMethod?.get(method) ?? byMethod?.get("OTHER");
    if (series === undefined) return;
    series.duration ??= this.#durationOf(series);
    series.duration.observe(seconds);
    if (outcome !== "complete") return this.#at(series.labels, status, outcome).count();
    let complete = series.complete.get(status);
    if (complete === undefined) {
      complete = this.#at(series.labels, status, outcome);
      series.complete.set(status, complete);
    }
    complete.count();
  }

  #seriesOf(route: Route | undefined, method: Method): MethodSeries {
    const labels = { method, route: route?.name ?? UNMATCHED_ROUTE };
    const complete = statusesOf(route, method).map((status) =>
      [status, this.#at(labels, status, "complete")] as const
    );
    for (const status of mayEndEarly(route, method)) {
      this.#at(labels, status, "aborted");
      this.#at(labels, status, "broken");
    }
    const series = { duration: undefined, complete: new Map(complete), labels };
    if (!route?.cached || method !== "GET" || route.inPieces && !route.streams) return series;
    return { ...series, duration: this.#durationOf(series) };
  }

  #durationOf({ labels }: Pick<MethodSeries, "labels">): HistogramSeries {
    return this.#metrics.histogram("http_server_request_duration_seconds", labels);
  }

  #at(labels: MethodSeries["labels"], status: number, outcome: Outcome): Series {
    return this.#metrics.series("http_server_requests_total", {
      ...labels,
      status: String(status),
      outcome,
    });
  }
}

/** Outcomes of a streamed body that may end early. */
function mayEndEarly(route: Route | undefined, method: Method): readonly number[] {
  if (method === "HEAD" || method === "OTHER" || route?.methods[method] === undefined) return [];
  if (route.streams && method === "GET") return [200, 206];
  return route.inPieces ? [200] : [];
}

/** The usual statuses of a route, and 500 where possible: an alert has to see the first one. */
function statusesOf(route: Route | undefined, method: Method): readonly number[] {
  if (route === undefined) {
    return UNMATCHED.filter(([one]) => one === method).map(([, status]) => status);
  }
  const key = method === "HEAD" ? "GET" : method;
  if (key === "OTHER" || route.methods[key] === undefined) return [];
  if (!route.cached) return method === "HEAD" ? [] : [200, 500];
  if (method !== "GET") return [200, 404];
  const unchanged = route.inPieces ? [304] : [];
  return [200, ...unchanged, 404, ...route.streams ? [206, 416] : []];
}
