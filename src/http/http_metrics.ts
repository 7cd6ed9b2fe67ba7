import {
  type Method,
  METHODS,
  type Outcome,
  UNMATCHED_ROUTE,
} from "../telemetry/instruments/http_labels.ts";
import type { Metrics, Series, Spread } from "../telemetry/metrics.ts";
import type { Route } from "./router.ts";

/** A request that is over. */
export interface Counted {
  /** `undefined` where the path has none. */
  readonly route: Route | undefined;
  readonly method: string;
  readonly status: number;
  readonly outcome: Outcome;
  readonly seconds: number;
}

/** What any route may answer when something fails. */
const FAILURES = [404, 503];
const UNCACHED_FAILURES = [400, 403, 500];
/** The server's words to what is no request among them. */
const UNMATCHED = [400, 404, 408, 414, 417, 431];

/** The series of one method of one route. */
interface MethodSeries {
  readonly duration: Spread;
  /** Whole answers, by status. */
  readonly complete: Map<number, Series>;
  readonly labels: { readonly method: Method; readonly route: string };
}

/** Counts requests. What a route can answer stands at 0 from the start. */
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

  end({ route, method, status, outcome, seconds }: Counted): void {
    this.#active--;
    const byMethod = this.#series.get(route);
    const series = byMethod?.get(method) ?? byMethod?.get("OTHER");
    if (series === undefined) return;
    series.duration.observe(seconds);
    const complete = outcome === "complete" ? series.complete.get(status) : undefined;
    if (complete !== undefined) return complete.count();
    const labels = { ...series.labels, status: String(status), outcome };
    this.#metrics.count("http_server_requests_total", labels);
  }

  #seriesOf(route: Route | undefined, method: Method): MethodSeries {
    const labels = { method, route: route?.name ?? UNMATCHED_ROUTE };
    const at = (status: number, outcome: Outcome) =>
      this.#metrics.series("http_server_requests_total", {
        ...labels,
        status: String(status),
        outcome,
      });
    const complete = statusesOf(route, method).map((status) =>
      [status, at(status, "complete")] as const
    );
    for (const status of mayEndEarly(route, method)) {
      at(status, "aborted");
      at(status, "broken");
    }
    const duration = this.#metrics.histogram("http_server_request_duration_seconds", labels);
    return { duration, complete: new Map(complete), labels };
  }
}

/** Answers that go out piece by piece. */
function mayEndEarly(route: Route | undefined, method: Method): readonly number[] {
  if (method === "HEAD" || method === "OTHER" || route?.methods[method] === undefined) return [];
  if (route.streams && method === "GET") return [200, 206];
  return route.inPieces ? [200] : [];
}

function statusesOf(route: Route | undefined, method: Method): readonly number[] {
  if (route === undefined) return UNMATCHED;
  const key = method === "HEAD" ? "GET" : method;
  if (key === "OTHER" || route.methods[key] === undefined) return [405];
  const failures = route.cached ? FAILURES : [...FAILURES, ...UNCACHED_FAILURES];
  const partial = route.streams && key === "GET" ? [206, 416] : [];
  const unchanged = route.cached && key === "GET" && route.inPieces ? [304] : [];
  return [200, ...partial, ...unchanged, ...failures];
}
