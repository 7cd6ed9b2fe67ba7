import type { Outcome } from "../../telemetry/instruments/http_labels.ts";
import { methodFacts } from "../../telemetry/method_facts.ts";
import type { RequestSpan, SpanFacts } from "../../telemetry/tracer.ts";
import type { ClientRequest } from "../message/client_request.ts";
import { pathOf } from "./path.ts";
import type { Answered } from "./request_observer.ts";

/** What a client calls itself is cut here: it is a stranger's text. */
const USER_AGENT_CHARS_MAX = 200;

/** What clients speak to the door. */
export type Scheme = "http" | "https";

export interface Ending {
  readonly outcome: Outcome;
  /** Sent of the body. */
  readonly bytes: number;
  readonly scheme: Scheme;
}

/** Tells what the request was, and what became of its answer, in OpenTelemetry's words. */
export function endServerSpan(
  span: RequestSpan,
  { request, requestId, route, answer }: Answered,
  { outcome, bytes, scheme }: Ending,
): void {
  const { status } = answer;
  const source = answer.headers.get("x-cache");
  span.set({
    ...requestFacts(request, scheme),
    "http.response.status_code": status,
    "http.response.body.size": bytes,
    ...(route === undefined ? {} : { "http.route": route.name }),
    ...(source === null ? {} : { "larder.x_cache": source }),
    "larder.request_id": requestId,
    "larder.outcome": outcome,
  });
  // What went wrong for a client, such as a 404, is no error of the server's.
  if (outcome === "broken" || status >= 500) span.fail(outcome);
  span.end();
}

/** Not the query: it may be somebody's secret. */
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

/** A name or an address, which has brackets where it is of IPv6, and maybe a port. */
const HOST_REGEXP = /^(?:\[([0-9A-Fa-f:.%]{2,64})\]|([A-Za-z0-9._~-]{1,255}))(?::(\d{1,5}))?$/;

const DEFAULT_PORTS = { http: 80, https: 443 } as const satisfies Readonly<Record<Scheme, number>>;

/** What the client calls us. */
function hostFacts(host: string, scheme: Scheme): SpanFacts {
  const [, ipv6, name, port = DEFAULT_PORTS[scheme]] = HOST_REGEXP.exec(host) ?? [];
  const address = ipv6 ?? name;
  return address === undefined ? {} : { "server.address": address, "server.port": Number(port) };
}
