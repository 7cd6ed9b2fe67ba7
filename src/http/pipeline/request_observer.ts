import { Buffer } from "node:buffer";
import type { Facts } from "../../base/failure.ts";
import type { Stretch } from "../../base/wait_notes.ts";
import type { OpenPull } from "../../history/open_pulls.ts";
import type { Pulls } from "../../history/pulls.ts";
import { clock } from "../../runtime/current.ts";
import { REQUEST_LINE } from "../../telemetry/events.ts";
import { type Outcome, UNMATCHED_ROUTE } from "../../telemetry/instruments/http_labels.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { RequestSpan } from "../../telemetry/tracer.ts";
import { type Answer, HandedOverAnswer, StreamAnswer } from "../message/answer.ts";
import type { Caller } from "../message/caller.ts";
import { CHANGING_METHODS, type ClientRequest, type Delivery, type DeliveryEnd } from "../message/client_request.ts";
import type { Route } from "../routes/router.ts";
import type { HttpMetrics } from "./http_metrics.ts";
import { pathOf } from "./path.ts";
import { notePulled } from "./pull_notes.ts";
import { endServerSpan, type Scheme } from "./server_span.ts";

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
  readonly pulls?: Pick<Pulls, "begin" | "narinfoHit" | "requestEnded"> | undefined;
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
    return this.#deps.pulls?.begin(client, atMs);
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
    if (answer instanceof StreamAnswer) {
      answer.served?.add(sentBytes ?? announcedBytes(answer));
      answer.release?.(outcome === "complete");
    }
    const endedAtMs = clock.nowMs();
    this.#count(answered, outcome, endedAtMs);
    if (pull !== undefined) {
      const { counted, narName, body, hasAsked } = answer;
      const isHit = counted === "HIT" && !hasAsked;
      if (isHit && narName !== undefined && typeof body === "string") {
        // A narinfo: it has as many bytes as characters.
        this.#deps.pulls?.narinfoHit(pull, narName, body.length, answered.startedAtMs, endedAtMs);
      } else {
        const waits = delivery?.waits ?? [];
        this.#notePulled(answered, pull, { endedAtMs, answeredAtMs, sentBytes, waits });
      }
    }
    if (span === undefined) return this.#log(answered, ended, sentBytes);
    const bytes = sentBytes ?? announcedBytes(answer);
    this.#log(answered, ended, bytes);
    endServerSpan(span, answered, { outcome, bytes, scheme: this.#deps.scheme });
  }

  #notePulled(
    { route, request, answer, startedAtMs }: Answered,
    pull: OpenPull,
    end: {
      readonly endedAtMs: number;
      readonly answeredAtMs: number | undefined;
      readonly sentBytes: number | undefined;
      readonly waits: readonly Stretch[];
    },
  ): void {
    const { endedAtMs, answeredAtMs = endedAtMs, sentBytes, waits } = end;
    const { pulls } = this.#deps;
    const kind = route?.ofPath;
    if (kind === undefined || pulls === undefined) return pull.uncounted();
    const bytes = sentBytes ?? announcedBytes(answer);
    notePulled(pulls, {
      ...{ pull, kind, request, answer, bytes },
      ...{ startedAtMs, answeredAtMs, endedAtMs, waits },
    });
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
    if (!log.enabled(level)) return;
    const path = pathOf(request.url) ?? "";
    const access = {
      method,
      path,
      route: route?.name ?? UNMATCHED_ROUTE,
      isNar: route?.streams ?? false,
      status: answer.status,
      // Computed here, as few log levels need it.
      bytes: sentBytes ?? announcedBytes(answer),
      durationMs: clock.nowMs() - startedAtMs,
      outcome: LOGGED_OUTCOMES[ended],
      cacheResult: answer.headers.get("x-cache"),
      client: request.peer,
      token: caller?.name,
      requestId,
    };
    const write = (more: Facts) => {
      const line = () => logAccess(log, level, { ...access, more: { ...more, ...answer.failed } });
      if (span === undefined) line();
      else span.run(line);
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

/** Paths are untrusted: the log cuts longer ones. */
const PATH_CHARS_MAX = 200;

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

export interface AccessLine {
  readonly method: string;
  readonly path: string;
  readonly route: string;
  readonly isNar: boolean;
  readonly status: number;
  readonly bytes: number;
  readonly durationMs: number;
  readonly outcome: string;
  /** The X-Cache header, if any. */
  readonly cacheResult: string | null;
  readonly requestId: string;
  /** Address from `peerAddress`; `undefined` if unknown. */
  readonly client: string | undefined;
  /** Name of the token, if the request needed one. */
  readonly token: string | undefined;
  /** Further facts from the route. */
  readonly more: Facts;
}

/** Logs a finished request in one line. */
export function logAccess(log: Logger, level: AccessLevel, access: AccessLine): void {
  const { method, route, status, bytes, outcome, cacheResult, client, token } = access;
  const facts: Facts = {
    method,
    route,
    path: access.path.slice(0, PATH_CHARS_MAX),
    ...access.more,
    status,
    bytes,
    duration_ms: Math.round(access.durationMs),
    outcome,
    ...(cacheResult === null ? {} : { x_cache: cacheResult }),
    ...(client === undefined ? {} : { client }),
    ...(token === undefined ? {} : { token }),
    request_id: access.requestId,
  };
  log[level](messageOf(access), facts);
}

/** 307: the store serves it. */
const SERVED = [200, 206, 307];

/** The log message. The specification fixes the one for a NAR from the cache. */
function messageOf({ isNar, method, status, cacheResult }: AccessLine): string {
  const isServed = isNar && method === "GET" && SERVED.includes(status);
  return isServed && cacheResult === "HIT" ? "serving nar from cache" : REQUEST_LINE;
}
