import type { Logger } from "../telemetry/logger.ts";
import { type Outcome, UNMATCHED_ROUTE } from "../telemetry/instruments/http_labels.ts";
import type { RequestSpan } from "../telemetry/tracer.ts";
import { accessLevel, logAccess } from "./access_log.ts";
import { type Sending, StreamAnswer, TextAnswer } from "./answer.ts";
import type { HttpMetrics } from "./http_metrics.ts";
import { pathOf } from "./path.ts";
import type { Route } from "./router.ts";

/**
 * What a listener says of an answer that is over, asked for once, where it matters: all of it was
 * sent, the connection ended before, or it cannot tell.
 */
export type Completion = () => Promise<"sent" | "cut" | "unsure">;

/** A request and its answer, whose body may still be on its way. */
export interface Answered {
  readonly request: Request;
  readonly requestId: string;
  /** `undefined` where the path has none. */
  readonly route: Route | undefined;
  readonly response: Response;
  readonly startedAtMs: number;
  /** Where the request is traced. */
  readonly span: RequestSpan | undefined;
}

export interface RequestObserverDeps {
  /** `undefined` counts nothing. */
  readonly metrics: HttpMetrics | undefined;
  readonly log: Logger;
}

/** What is around every request, whatever becomes of it: it is counted, and its line is written. */
export class RequestObserver {
  readonly #deps: RequestObserverDeps;

  constructor(deps: RequestObserverDeps) {
    this.#deps = deps;
  }

  begin(): number {
    this.#deps.metrics?.begin();
    return performance.now();
  }

  /** Without `completed`, the answer counts as sent. */
  answered(answered: Answered, completed?: Completion): void {
    const { response, span } = answered;
    const end = (outcome: Outcome) => {
      if (span === undefined) return this.#end(answered, outcome);
      span.run(() => this.#end(answered, outcome));
      endSpan(span, answered, outcome);
    };
    // A text is out in one piece; whether it arrived, nobody learns.
    if (!(response instanceof StreamAnswer)) return end("complete");
    const { sending, served } = response;
    const ended = (completion: "sent" | "cut" | "unsure") => {
      served?.add(sending.bytes());
      end(outcomeOf(completion, sending));
    };
    if (completed === undefined) return ended("sent");
    completed().then(ended);
  }

  #end({ request, requestId, route, response, startedAtMs }: Answered, outcome: Outcome): void {
    const { metrics, log } = this.#deps;
    const { method } = request;
    const { status } = response;
    const durationMs = performance.now() - startedAtMs;
    metrics?.end({ route, method, status, outcome, seconds: durationMs / 1_000 });
    const level = accessLevel(route, method);
    if (!log.enabled(level)) return;
    logAccess(log, level, {
      method,
      path: pathOf(request.url) ?? "",
      route: route?.name ?? UNMATCHED_ROUTE,
      status,
      bytes: bytesOf(response),
      durationMs,
      outcome,
      source: response.headers.get("x-cache"),
      requestId,
    });
  }
}

function endSpan(span: RequestSpan, answered: Answered, outcome: Outcome): void {
  const { request, requestId, route, response } = answered;
  const source = response.headers.get("x-cache");
  span.set({
    "http.request.method": request.method,
    "http.response.status_code": response.status,
    "http.response.body.size": bytesOf(response),
    "url.path": pathOf(request.url) ?? "",
    "url.scheme": "http",
    ...(route === undefined ? {} : { "http.route": route.name }),
    ...(source === null ? {} : { "larder.x_cache": source }),
    "larder.request_id": requestId,
    "larder.outcome": outcome,
  });
  const isFailed = outcome === "broken" || response.status >= 500;
  span.end(
    isFailed ? new Error(`the answer was ${outcome}, status ${response.status}`) : undefined,
  );
}

function outcomeOf(completion: "sent" | "cut" | "unsure", sending: Sending): Outcome {
  const end = sending.end();
  if (end === "broken") return "broken";
  if (completion === "sent") return "complete";
  return completion === "unsure" && end === "whole" ? "complete" : "aborted";
}

function bytesOf(response: Response): number {
  if (response instanceof StreamAnswer) return response.sending.bytes();
  return response instanceof TextAnswer ? response.bodyBytes : 0;
}
