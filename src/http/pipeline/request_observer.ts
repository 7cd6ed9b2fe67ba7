import { Buffer } from "node:buffer";
import type { Facts } from "../../base/failure.ts";
import type { Stretch } from "../../base/wait_notes.ts";
import type { OpenPull, PathResult, Pulls } from "../../history/pulls.ts";
import { clock } from "../../runtime/current.ts";
import { REQUEST_LINE } from "../../telemetry/events.ts";
import {
  type Method,
  METHODS,
  type Outcome,
  UNMATCHED_ROUTE,
} from "../../telemetry/instruments/http_labels.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { HistogramSeries, Metrics, Series } from "../../telemetry/metrics.ts";
import { methodFacts, type RequestSpan, type SpanFacts } from "../../telemetry/tracer.ts";
import { MEMBER_HEADER } from "../../upstream/loops.ts";
import {
  type Answer,
  type Caller,
  CHANGING_METHODS,
  type ClientRequest,
  DEFAULT_PORTS,
  type Delivery,
  type DeliveryEnd,
  HandedOverAnswer,
  isByCommand,
  parseHost,
  pathOf,
  StreamAnswer,
} from "../message/message.ts";
import type { Route } from "../routes/router.ts";

/** The outcomes that are counted: few. */
const OUTCOMES: Readonly<Record<DeliveryEnd, Outcome>> = {
  sent: "complete",
  left: "aborted",
  stopped: "aborted",
  closed: "aborted",
  broken: "broken",
};

/** The log tells apart what larder itself cut short. */
const LOGGED_OUTCOMES = { ...OUTCOMES, stopped: "stopped", closed: "closed" } as const;

const NOTHING_MORE: Facts = {};

/** Paths are untrusted: the log cuts longer ones. */
const PATH_CHARS_MAX = 200;

/** Statuses of a NAR that was served. */
const SERVED = [200, 206, 307];

/** How the paths of a pull came, by how their requests count. */
const PULL_RESULTS: Readonly<Record<string, PathResult>> = {
  HIT: "hit",
  JOINED: "joined",
  prefetched: "ahead",
  MISS: "fetched",
};

/** A request and its answer, whose body may still be in flight. */
export interface Answered {
  readonly request: ClientRequest;
  readonly requestId: string;
  /** `undefined` for a path without a route. */
  readonly route: Route | undefined;
  /** The holder of the token, if the request needs one. */
  readonly caller: Caller | undefined;
  readonly answer: Answer;
  readonly startedAtMs: number;
  /** The pull of its client, if it is part of one. */
  readonly pull: OpenPull | undefined;
  /** Set if the request is traced. */
  readonly span: RequestSpan | undefined;
}

/** The answer to a request that the server refused. */
export interface UnreadableRequest {
  readonly answer: Answer;
  /** One of few. */
  readonly reason: string;
  /** `undefined` if unreadable. */
  readonly method: string | undefined;
  readonly client: string;
  readonly requestId: string;
}

export interface RequestObserverDeps {
  /** `undefined` counts nothing. */
  readonly metrics: HttpMetrics | undefined;
  readonly log: Logger;
  readonly scheme: Scheme;
  /** Default: nobody notes the pulls of clients. */
  readonly pulls?: Pick<Pulls, "open" | "requestEnded"> | undefined;
}

/** Counts, logs and traces every request. */
export class RequestObserver {
  readonly #deps: RequestObserverDeps;

  constructor(deps: RequestObserverDeps) {
    this.#deps = deps;
  }

  begin(): number {
    this.#deps.metrics?.begin();
    return clock.nowMs();
  }

  /** A client begins a request for a path, on which its pull goes on. */
  beginPath(client: string, atMs: number): OpenPull | undefined {
    return this.#deps.pulls?.open.begin(client, atMs);
  }

  /** Counts and logs an answer when it ends. Without `delivery`, it counts as sent. */
  answered(answered: Answered, delivery?: Delivery): void {
    // A text leaves in one write; the server never learns whether it arrived.
    if (delivery === undefined || !(answered.answer instanceof StreamAnswer)) {
      return this.#finish(answered, "sent");
    }
    const answeredAtMs = answered.pull && clock.nowMs();
    delivery.ended.then((ended) =>
      this.#finish(answered, ended, delivery.sentBytes, answeredAtMs, delivery)
    );
  }

  /** Counts and logs a request that the server refused. */
  refused({ answer, reason, method = "OTHER", client, requestId }: UnreadableRequest): void {
    const { metrics, log } = this.#deps;
    const { status } = answer;
    metrics?.begin();
    metrics?.end({ route: undefined, method, status, outcome: "complete", seconds: 0 });
    log.debug(REQUEST_LINE, {
      method,
      route: UNMATCHED_ROUTE,
      status,
      bytes: announcedBytes(answer),
      duration_ms: 0,
      outcome: "complete",
      reason,
      client,
      request_id: requestId,
    });
  }

  /** Counts and logs an ended answer. Without `sentBytes`, the announced bytes count. */
  #finish(
    answered: Answered,
    ended: DeliveryEnd,
    sentBytes?: number,
    answeredAtMs?: number,
    delivery?: Pick<Delivery, "waits">,
  ): void {
    const { answer, span, pull } = answered;
    const outcome = OUTCOMES[ended];
    let unsavedBytes = 0;
    if (answer instanceof StreamAnswer) {
      const bytes = sentBytes ?? announcedBytes(answer);
      answer.served?.add(bytes);
      unsavedBytes = answer.unsaved?.of(bytes) ?? 0;
      answer.unsaved?.counter.add(unsavedBytes);
      answer.release?.(outcome === "complete");
    }
    const endedAtMs = clock.nowMs();
    this.#count(answered, outcome, endedAtMs);
    if (pull !== undefined) {
      const { counted, narName, body, hasAsked } = answer;
      const isHit = counted === "HIT" && !hasAsked;
      if (isHit && narName !== undefined && typeof body === "string") {
        // A narinfo: it has as many bytes as characters.
        this.#deps.pulls?.open.narinfoHit(
          pull,
          narName,
          body.length,
          answered.startedAtMs,
          endedAtMs,
        );
      } else {
        const waits = delivery?.waits ?? [];
        const sent = { sentBytes, unsavedBytes, waits };
        this.#notePulled(answered, pull, { endedAtMs, answeredAtMs, ...sent });
      }
    }
    if (span === undefined) return this.#log(answered, ended, sentBytes);
    const bytes = sentBytes ?? announcedBytes(answer);
    this.#log(answered, ended, bytes);
    endServerSpan(span, answered, { outcome, bytes, scheme: this.#deps.scheme });
  }

  /** Notes for its pull how a request went that was no stored narinfo. */
  #notePulled(
    { route, request, answer, startedAtMs }: Answered,
    pull: OpenPull,
    { endedAtMs, answeredAtMs = endedAtMs, sentBytes, unsavedBytes, waits }: {
      readonly endedAtMs: number;
      readonly answeredAtMs: number | undefined;
      readonly sentBytes: number | undefined;
      readonly unsavedBytes: number;
      /** When the client had all that there was of the body. */
      readonly waits: readonly Stretch[];
    },
  ): void {
    const { pulls } = this.#deps;
    const kind = route?.ofPath;
    const { counted, narName, status, hasAsked, headers } = answer;
    const result = counted === undefined ? undefined : PULL_RESULTS[counted];
    const isAbsent = counted === undefined && status === 404;
    // Other members count their own clients, and larder's commands are none.
    const isOther = isByCommand(request) || request.headers.get(MEMBER_HEADER) !== null;
    if (kind === undefined || pulls === undefined || isOther || result === undefined && !isAbsent) {
      return pull.uncounted();
    }
    const asked = lastSegment(request.url);
    const isFromUpstream = hasAsked || headers.get("x-cache") !== "HIT";
    const name = narName ?? asked;
    const bytes = sentBytes ?? announcedBytes(answer);
    const times = { startedAtMs, answeredAtMs, endedAtMs };
    const how = { kind, result: result ?? "absent", isFromUpstream } as const;
    const ended = { ...how, ...times, name, bytes, unsavedBytes };
    pulls.requestEnded(pull, ended, kind === "narinfo" ? asked : name, waits);
  }

  #count(
    { request: { method }, route, answer, startedAtMs }: Answered,
    outcome: Outcome,
    endedAtMs: number,
  ): void {
    const seconds = (endedAtMs - startedAtMs) / 1_000;
    this.#deps.metrics?.end({ route, method, status: answer.status, outcome, seconds });
  }

  /** Logs the request, maybe a moment later: its route may look something up first. */
  #log(answered: Answered, ended: DeliveryEnd, sentBytes: number | undefined): void {
    const { request, requestId, route, caller, answer, startedAtMs, span } = answered;
    const { log } = this.#deps;
    const { method } = request;
    const level = accessLevel(route, method, answer.failed !== undefined);
    if (!log.levels.has(level)) return;
    const path = pathOf(request.url) ?? "";
    const { status } = answer;
    const { peer: client } = request;
    const cacheResult = answer.headers.get("x-cache");
    // 307: the store serves it. The specification fixes the message for a NAR from the cache.
    const isServed = route?.streams && method === "GET" && SERVED.includes(status);
    const message = isServed && cacheResult === "HIT" ? "serving nar from cache" : REQUEST_LINE;
    const durationMs = clock.nowMs() - startedAtMs;
    const write = (more: Facts) => {
      const facts: Facts = {
        method,
        route: route?.name ?? UNMATCHED_ROUTE,
        path: path.slice(0, PATH_CHARS_MAX),
        ...more,
        ...answer.failed,
        status,
        // Computed here, as few log levels need it.
        bytes: sentBytes ?? announcedBytes(answer),
        duration_ms: Math.round(durationMs),
        outcome: LOGGED_OUTCOMES[ended],
        ...(cacheResult === null ? {} : { x_cache: cacheResult }),
        ...(client === undefined ? {} : { client }),
        ...(caller === undefined ? {} : { token: caller.name }),
        request_id: requestId,
      };
      if (span === undefined) log[level](message, facts);
      else span.run(() => log[level](message, facts));
    };
    // A refused request costs no read of the database.
    const isRefused = answer.status === 401 || answer.status === 403;
    const more = (isRefused ? undefined : route?.describe?.(path)) ?? NOTHING_MORE;
    if (more instanceof Promise) more.then(write);
    else write(more);
  }
}

/** Length of the body by its head; 0 if unknown. */
function announcedBytes(answer: Answer): number {
  if (answer instanceof HandedOverAnswer) return answer.handedOverBytes;
  const { body, headers } = answer;
  if (body === null) return 0;
  if (typeof body === "string") return Buffer.byteLength(body);
  return body instanceof Uint8Array ? body.length : Number(headers.get("content-length") ?? 0);
}

type AccessLevel = "debug" | "info";

/**
 * The log level of a request: info for NARs, changes, and failures of routes that people and their
 * programs ask; else debug.
 */
function accessLevel(route: Route | undefined, method: string, hasFailed: boolean): AccessLevel {
  if (route === undefined) return "debug";
  if (route.streams || CHANGING_METHODS.has(method)) return "info";
  return hasFailed && !route.cached ? "info" : "debug";
}

/** The hash of a narinfo, or the name of a NAR file, as the client wrote it. */
function lastSegment(url: string): string {
  const path = pathOf(url) ?? "";
  const name = path.slice(path.lastIndexOf("/") + 1).slice(0, 120);
  return name.endsWith(".narinfo") ? name.slice(0, -".narinfo".length) : name;
}

/** User agents are untrusted: the span cuts longer ones. */
const USER_AGENT_CHARS_MAX = 200;

/** The scheme of the listener. */
type Scheme = keyof typeof DEFAULT_PORTS;

interface AnswerEnd {
  readonly outcome: Outcome;
  /** Bytes sent of the body. */
  readonly bytes: number;
  readonly scheme: Scheme;
}

/** Ends a request's span with OpenTelemetry's attributes of request and answer. */
function endServerSpan(
  span: RequestSpan,
  { request, requestId, route, answer }: Answered,
  { outcome, bytes, scheme }: AnswerEnd,
): void {
  const { status } = answer;
  const cacheResult = answer.headers.get("x-cache");
  span.set({
    ...requestFacts(request, scheme),
    "http.response.status_code": status,
    "http.response.body.size": bytes,
    ...(route === undefined ? {} : { "http.route": route.name }),
    ...(cacheResult === null ? {} : { "larder.x_cache": cacheResult }),
    "larder.request_id": requestId,
    "larder.outcome": outcome,
  });
  // A client's error, such as a 404, is no error of the server.
  if (outcome === "broken" || status >= 500) span.fail(outcome);
  span.end();
}

/** Attributes of the request, without its query, which may hold secrets. */
function requestFacts(request: ClientRequest, scheme: Scheme): SpanFacts {
  const { method, url, headers, httpVersion, peer } = request;
  const agent = headers.get("user-agent")?.slice(0, USER_AGENT_CHARS_MAX);
  return {
    ...methodFacts(method),
    "url.path": pathOf(url) ?? "",
    "url.scheme": scheme,
    ...hostFacts(headers.get("host") ?? "", scheme),
    ...(peer === undefined ? {} : { "client.address": peer }),
    ...(agent === undefined ? {} : { "user_agent.original": agent }),
    ...(httpVersion === undefined ? {} : { "network.protocol.version": httpVersion }),
  };
}

/** Attributes of the Host header. */
function hostFacts(text: string, scheme: Scheme): SpanFacts {
  const host = parseHost(text);
  if (host === undefined) return {};
  return { "server.address": host.name, "server.port": host.port ?? DEFAULT_PORTS[scheme] };
}

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
