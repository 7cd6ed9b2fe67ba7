import type { Outcome } from "../telemetry/instruments/http_labels.ts";
import { methodFacts } from "../telemetry/method_facts.ts";
import type { RequestSpan } from "../telemetry/tracer.ts";
import { pathOf } from "./path.ts";
import type { Answered } from "./request_observer.ts";

/** Tells what the request was, and what became of its answer, in OpenTelemetry's words. */
export function endServerSpan(
  span: RequestSpan,
  { request, requestId, route, answer }: Answered,
  { outcome, bytes }: { readonly outcome: Outcome; readonly bytes: number },
): void {
  const { status } = answer;
  const source = answer.headers.get("x-cache");
  span.set({
    ...methodFacts(request.method),
    "http.response.status_code": status,
    "http.response.body.size": bytes,
    "url.path": pathOf(request.url) ?? "",
    "url.scheme": "http",
    ...(route === undefined ? {} : { "http.route": route.name }),
    ...(source === null ? {} : { "larder.x_cache": source }),
    "larder.request_id": requestId,
    "larder.outcome": outcome,
  });
  const isFailed = outcome === "broken" || status >= 500;
  span.end(isFailed ? new Error(`the answer was ${outcome}, status ${status}`) : undefined);
}
