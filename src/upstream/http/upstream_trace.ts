import type { Tracer } from "../../telemetry/tracer.ts";

/** Connects a request to an upstream with the trace that it belongs to. */
export interface UpstreamTrace {
  /** Headers that let the upstream continue the trace; none if it must not know of it. */
  headers(): Readonly<Record<string, string>>;
  /** Notes the status of the final response. */
  answered(status: number): void;
}

/** Trace of requests without one: it does nothing. */
export const NO_UPSTREAM_TRACE: UpstreamTrace = { headers: () => ({}), answered() {} };

/** Trace of requests in spans. `propagates`: upstreams get the trace's headers. */
export function upstreamTraceOf(tracer: Tracer, propagates: boolean): UpstreamTrace {
  return {
    headers: () => propagates ? tracer.headers() : {},
    answered: (status) => tracer.note({ "http.response.status_code": status }),
  };
}

/** The same trace; each request has these headers, too. */
export function traceWith(
  trace: UpstreamTrace = NO_UPSTREAM_TRACE,
  headers: UpstreamTrace["headers"],
): UpstreamTrace {
  return { ...trace, headers: () => ({ ...trace.headers(), ...headers() }) };
}
