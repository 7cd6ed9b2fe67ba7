import type { Outcome } from "../../telemetry/instruments/http_labels.ts";
import { methodFacts } from "../../telemetry/method_facts.ts";
import type { RequestSpan, SpanFacts } from "../../telemetry/tracer.ts";
import type { ClientRequest } from "../message/client_request.ts";
import { DEFAULT_PORTS, parseHost } from "../message/host.ts";
import { pathOf } from "../message/target.ts";
import type { Answered } from "./request_observer.ts";

/** User agents are untrusted: the span cuts longer ones. */
const USER_AGENT_CHARS_MAX = 200;

/** The scheme of the listener. */
export type Scheme = keyof typeof DEFAULT_PORTS;

export interface AnswerEnd {
  readonly outcome: Outcome;
  /** Bytes sent of the body. */
  readonly bytes: number;
  readonly scheme: Scheme;
}

/** Ends a request's span with OpenTelemetry's attributes of request and answer. */
export function endServerSpan(
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
